#!/bin/sh
# Installs into a virtual environment: pip_install.sh FOLDER CONSTRAINTS PIP-ARGUMENT...
# Package indexes other than PyPI come from pip's own configuration and environment.
set -eu
folder=$1 constraints=$2
shift 2
log=$folder/pip.log

echo "setup: installing $* (log: $log)"
"$folder/bin/python" -m pip install --disable-pip-version-check --no-input \
    --no-compile --constraint "$constraints" "$@" >"$log" 2>&1 && exit

if grep -qE 'NewConnectionError|NameResolutionError|ConnectTimeout|ReadTimeout|ProxyError' "$log"; then
    echo "setup: no network: pip cannot reach the package index (log: $log)" >&2
else
    reason=$(grep '^ERROR' "$log" | tail -n 1)
    echo "setup: pip failed: ${reason:-see below} (log: $log)" >&2
    [ -n "$reason" ] || tail -n 20 "$log" >&2
fi
exit 1
