#!/bin/sh
# Makes an empty virtual environment: make_venv.sh FOLDER
# Takes $BASE_PYTHON if set, else the first Python that can make one
# and for which ROS's wheels exist (3.11 to 3.14).
set -eu
folder=$1

fail() {
    echo "setup: $*" >&2
    exit 1
}

can() { "$1" -c "$2" >/dev/null 2>&1; }

has_version='import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))'
has_venv='import venv, ensurepip'

found= reason="no Python 3.11 to 3.14 found (looked for python3, python3.11 and so on)"
for python in ${BASE_PYTHON:-python3 python3.12 python3.13 python3.14 python3.11 python}; do
    if ! can "$python" "$has_version"; then
        [ -z "${BASE_PYTHON:-}" ] || reason="$python is not a Python 3.11 to 3.14"
    elif ! can "$python" "$has_venv"; then
        reason="$python has no venv module (on Debian and Ubuntu: apt install python3-venv)"
    else
        found=$python
        break
    fi
done
[ -n "$found" ] || fail "$reason"

echo "setup: $folder with $("$found" --version)"
rm -rf "$folder"
"$found" -m venv "$folder" || fail "$found -m venv $folder failed, see above"
