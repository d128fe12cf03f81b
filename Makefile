# Everything a machine needs beside Python >= 3.11, a C/C++ compiler and make is put into .venv.
# Choose the Python with BASE_PYTHON=/path/to/python. Package indexes come from pip's settings.

VENV := .venv
PYTHON := $(VENV)/bin/python
PARITY_VENV := .venv-parity
PARITY_PYTHON := $(PARITY_VENV)/bin/python
DOCS_VENV := .venv-docs
DOCS_PYTHON := $(DOCS_VENV)/bin/python
ARGS ?=

# A variable that nobody reads would be ignored without a word.
KNOWN := ARGS VERSION CAMERAS VIEW CRAZYFLOW_ROS_FLIGHTS BASE_PYTHON HOME MAKEFLAGS
GIVEN := $(foreach name,$(.VARIABLES),$(if $(filter command,$(origin $(name))),$(name)))
UNKNOWN := $(filter-out $(KNOWN) -%,$(GIVEN))
ifneq ($(strip $(UNKNOWN)),)
    $(error unknown variable $(UNKNOWN), known are ARGS, CAMERAS, VIEW, VERSION, CRAZYFLOW_ROS_FLIGHTS, BASE_PYTHON; parameters go into \
ARGS, such as make sim ARGS="n_drones:=2")
endif

# The environment is self-contained: a sourced ROS would mix two client libraries.
ifdef AMENT_PREFIX_PATH
unexport AMENT_PREFIX_PATH CMAKE_PREFIX_PATH LD_LIBRARY_PATH
endif
unexport PYTHONPATH PYTHONHOME _ROS_WHEELS_BOOTSTRAP_COMPLETE
# Without byte code each of hundreds of processes would compile JAX and ROS anew, for 3 seconds.
unexport PYTHONDONTWRITEBYTECODE
# ROS's programs find those of this machine only, unless you have chosen otherwise.
ifeq ($(strip $(ROS_AUTOMATIC_DISCOVERY_RANGE)$(ROS_STATIC_PEERS)$(ROS_DISCOVERY_SERVER)),)
export ROS_AUTOMATIC_DISCOVERY_RANGE := LOCALHOST
endif
# ROS writes its logs below HOME and refuses to start without.
ifeq ($(strip $(HOME)),)
export HOME := $(CURDIR)/$(VENV)
endif

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup sim fly demo-sensors test hostile journeys soak flights reality bench parity docs lint format wheel release clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: $(VENV)/.ready ## Make .venv with ROS 2, all packages and the missing message packages

sim: $(VENV)/.ready ## Fly figure-eights in ROS 2 (ARGS="n_drones:=1", CAMERAS=1, VIEW=1)
	@$(PYTHON) examples/18_figure_eights/figure_eights.py $(if $(CAMERAS),sensors:=config/sensors.yaml) $(if $(VIEW),view:=true) $(ARGS)

fly: $(VENV)/.ready ## Fly a drone with the keyboard of this terminal
	@$(PYTHON) -m crazyflow_ros.client.keyboard

demo-sensors: $(VENV)/.ready ## Fly through a room; what the sensors see comes into out/
	@$(PYTHON) examples/19_room/room.py

# By itself xdist would start those files last that have few tests, among them the longest ones. A test that
# takes a quarter of an hour hangs: what its threads do is printed, and it fails.
TEST_FLAGS := -n auto --maxprocesses 4 -p tools.whole_files --dist loadfile --no-loadscope-reorder \
	-o faulthandler_timeout=900 -o faulthandler_exit_on_timeout=true

test: $(VENV)/.ready ## Run all tests (ARGS="-k launch")
	@$(PYTHON) -m pytest $(TEST_FLAGS) $(ARGS)

hostile: $(VENV)/.ready ## Send a simulator 20,000 hostile inputs (ARGS="--inputs 2000")
	@PYTHONPATH=test $(PYTHON) test/hostile.py $(ARGS)

journeys: $(VENV)/.ready ## Walk at random across a simulator's features (ARGS="--steps 3000 --seed 7")
	@PYTHONPATH=test $(PYTHON) -m journeys $(ARGS)

soak: $(VENV)/.ready $(PARITY_VENV)/.ready ## Run a simulator for 20 minutes under random commands, and tests at length (ARGS="--minutes 2")
	@PYTHONPATH=test $(PYTHON) test/soak.py $(ARGS)
	@CRAZYFLOW_ROS_SOAK=1 $(PYTHON) -m pytest -q test/lockstep/test_lock_step.py test/runtime/test_checkpoint_file.py
	@CRAZYFLOW_ROS_SOAK=1 $(PYTHON) -m pytest -q -m soak
	@CRAZYFLOW_ROS_SOAK=1 CRAZYFLOW_PYTHON=$(PARITY_PYTHON) $(PYTHON) -m pytest test/parity -q

flights: $(VENV)/.ready ## Fly random missions and name the worst (ARGS="--missions 10000")
	@$(PYTHON) -m benchmark.flights $(ARGS)

# Real flights are not part of the repository: this folder has some, in folders such as nanobench.
CRAZYFLOW_ROS_FLIGHTS ?= ../shared/data

reality: $(VENV)/.ready ## Fly real flights again; tables, and pictures into out/reality (CRAZYFLOW_ROS_FLIGHTS=folder, ARGS="--known true")
	@test -d "$(CRAZYFLOW_ROS_FLIGHTS)/nanobench" || { \
		echo "there are no real flights in $(CRAZYFLOW_ROS_FLIGHTS)/nanobench: see docs/guides/flight_logs.md, and set" \
		"CRAZYFLOW_ROS_FLIGHTS to a folder with a folder nanobench" >&2; exit 1; }
	@mkdir -p out/reality
	@$(PYTHON) -m crazyflow_ros reality "$(CRAZYFLOW_ROS_FLIGHTS)/nanobench" --drone examples/14_real_drone \
		--pictures out/reality --json out/reality/figures.json $(ARGS)

bench: $(VENV)/.ready $(PARITY_VENV)/.ready ## Run the benchmarks (ARGS="sim" or ARGS="node")
	@CRAZYFLOW_PYTHON=$(PARITY_PYTHON) $(PYTHON) -m benchmark.run $(ARGS)

parity: $(VENV)/.ready $(PARITY_VENV)/.ready ## Compare with Crazyflow, in a .venv-parity of its own
	@CRAZYFLOW_PYTHON=$(PARITY_PYTHON) $(PYTHON) -m pytest test/parity -q $(ARGS)

VERSION = $(shell sed -n 's|.*<version>\(.*\)</version>.*|\1|p' package.xml)

docs: $(DOCS_VENV)/.ready ## Check the pages, and build their site into out/site
	@$(DOCS_PYTHON) -m tools.pages
	@$(DOCS_VENV)/bin/codespell *.md docs tools crazyflow_ros
	@NO_MKDOCS_2_WARNING=1 $(DOCS_PYTHON) -m mkdocs build --strict --site-dir out/site/$(VERSION)
	@echo "docs: out/site/$(VERSION); $(DOCS_PYTHON) -m http.server -b 127.0.0.1 -d out/site 8000 shows it"

lint: $(VENV)/.ready ## Check style, types and the direction of imports
	@$(PYTHON) -m ruff check .
	@$(PYTHON) -m ruff format --check .
	@$(PYTHON) -m mypy
	@$(PYTHON) -m tools.rooms

format: $(VENV)/.ready ## Format the code and fix what can be fixed
	@$(PYTHON) -m ruff format .
	@$(PYTHON) -m ruff check --fix .

wheel: $(VENV)/.ready ## Build a wheel and an sdist into dist/, and fly with the wheel in an empty environment
	@rm -rf dist build/bdist.* build/lib
	@$(PYTHON) -m build --no-isolation --outdir dist . >$(VENV)/wheel.log 2>&1 || { tail -n 20 $(VENV)/wheel.log; exit 1; }
	@rm -rf crazyflow_ros.egg-info # Python would read the entry points of this version for ever
	@$(PYTHON) tools/try_wheel.py dist

release: $(VENV)/.ready ## Prepare a release: numbers, wheel, sdist, bloom's tracks (VERSION=0.3.0)
	@$(PYTHON) -m tools.release "$(VERSION)"

clean: ## Remove everything that the Makefile makes
	rm -rf $(VENV) $(PARITY_VENV) $(DOCS_VENV) out build dist *.egg-info overlays/*/*.egg-info crazyflow_ros/ros/messages/_*.so
	rm -rf .pytest_cache .ruff_cache .mypy_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Stamps in an environment: .empty (made, nothing in it), .installed (pip is done), .ready.
# While pip runs there is none, so an interrupted installation starts again from an empty folder.

$(VENV)/.empty $(PARITY_VENV)/.empty $(DOCS_VENV)/.empty:
	@sh tools/make_venv.sh $(@D)
	@touch $@

$(VENV)/.installed: setup.py setup.cfg crazyflow_ros/extras.py package.xml constraints.txt crazyflow_ros/ros/messages/outbox.c \
		crazyflow_ros/ros/memory.c | $(VENV)/.empty
	@$(PYTHON) interfaces/build.py --check
	@rm -rf $(VENV)/.empty crazyflow_ros.egg-info
	@sh tools/pip_install.sh $(VENV) constraints.txt --upgrade pip setuptools hatchling
	@sh tools/pip_install.sh $(VENV) constraints.txt --no-build-isolation -e '.[ros,gym,dev]'
	@touch $(VENV)/.empty $@

$(VENV)/.ready: $(VENV)/.installed interfaces/build.py interfaces/less_to_compile.cmake overlays/tf2_ros/setup.py \
		$(shell find interfaces/*/ -type f)
	@$(PYTHON) interfaces/build.py
	@$(PYTHON) -c "import tf2_ros" 2>/dev/null || \
		sh tools/pip_install.sh $(VENV) constraints.txt --no-deps --no-build-isolation -e overlays/tf2_ros
	@$(PYTHON) -c "import crazyflow_ros.ros.node" # leaves the byte code that each start needs
	@touch $@

$(PARITY_VENV)/.ready: parity-constraints.txt | $(PARITY_VENV)/.empty
	@rm $(PARITY_VENV)/.empty
	@sh tools/pip_install.sh $(PARITY_VENV) parity-constraints.txt --upgrade pip
	@sh tools/pip_install.sh $(PARITY_VENV) parity-constraints.txt crazyflow
	@touch $(PARITY_VENV)/.empty $@

$(DOCS_VENV)/.ready: docs-constraints.txt | $(DOCS_VENV)/.empty
	@rm $(DOCS_VENV)/.empty
	@sh tools/pip_install.sh $(DOCS_VENV) docs-constraints.txt --upgrade pip
	@sh tools/pip_install.sh $(DOCS_VENV) docs-constraints.txt codespell mermaidx mkdocs-material 'mkdocstrings[python]'
	@touch $(DOCS_VENV)/.empty $@
