# Every task of this project; README, CONTRIBUTING and CI call nothing else.
# Works with GNU make 3.81 (macOS) and newer. `make` alone lists the targets.

PYTHON ?=
TORCH_INDEX ?=
LAB_ARGS ?=
TEST_ARGS ?=
NB ?=
N ?= 60
SEED ?=
FROM ?=
OUT ?=
SINCE ?=
ROSTER ?=
CSV ?=
NAMES ?=
FILES ?=
MINE ?=
HUB ?= /opt/attention-hub
PORT ?= 8000
PROXY ?=
PKG ?=

# Handed on by the environment, so that quotes and spaces in them stay what they are.
export PYTHON TORCH_INDEX NB N SEED FROM OUT SINCE ROSTER CSV NAMES FILES MINE HUB PORT PROXY PKG
# A python3 kernel that the user installed elsewhere must not stand before the one in .venv.
export JUPYTER_PREFER_ENV_PATH := 1

RUN := .venv/bin/python
# tests/plugin.py says which file comes first. Each kernel would compile the helpers anew where the
# environment tells Python to keep no bytecode.
TEST := PYTHONDONTWRITEBYTECODE= $(RUN) -m pytest --nbval --nbval-current-env --nbval-cell-timeout=60 --numprocesses=2 --dist=loadfile --no-loadscope-reorder
READY := .venv/ready
READY_DEV := .venv/ready-dev
READY_SLIDES := .venv/ready-slides
READY_NPM := .venv/npm/ready
READY_LIGHTHOUSE := .venv/lighthouse/ready
# One worker builds the site and tries it, one works in JupyterLab; who is done first takes the rest.
BROWSE := $(RUN) -m pytest -p tests.plugin --override-ini addopts=--import-mode=importlib --numprocesses=2 --dist=loadfile --no-loadscope-reorder
# As root, with the hub's own Python. -B: root leaves no files of its own in the clone.
AS_HUB := exec "$$HUB/venv/bin/python" -B -m
WITH_HUB := bash classroom/install.sh look && $(AS_HUB)
INSTALL_HUB := bash classroom/install.sh && $(AS_HUB)

# The .venv that make has finished names its folder. A moved project or a removed Python: install anew.
ifneq "$(shell [ -x $(RUN) ] && cat $(READY) 2>/dev/null)" "$(CURDIR)"
$(READY): FORCE
endif

.DEFAULT_GOAL := help
.PHONY: help lab fresh report pages cheatsheet slides lecture model circuits real real-answers wheel site lighthouse hub accounts remove-accounts collect watch publish test test-slow test-two-threads test-all test-hub mutants lint format refresh check-upgrade bench browser clean FORCE

help: ## list the targets
	@echo "make TARGET, where TARGET is one of"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-15s %s\n", $$1, $$2 }' Makefile
	@echo "Settings: PYTHON=python3.12 chooses the Python that makes .venv (3.11 or newer)."
	@echo "          TORCH_INDEX=<url> installs torch from that index, e.g. the CPU one of PyTorch (see README)."

lab: $(READY) ## open JupyterLab at notebook 00 in work/, your own copies (LAB_ARGS="--no-browser --port 8899")
	@$(RUN) -m tools.lab $(LAB_ARGS)

fresh: $(READY) ## set your copy of one notebook aside and take a new one (NB=03)
	@$(RUN) -m tools.fresh "$$NB"

slides: $(READY_SLIDES) ## open your copy of one notebook as live slides (NB=03 LAB_ARGS="--port 8899")
	@$(RUN) -m tools.slides.live "$$NB" $(LAB_ARGS)

lecture: $(READY) $(READY_NPM) ## write slides and run sheets for the plans of teaching/ into lecture/, in some minutes (needs npm; shown without a network)
	@$(RUN) -m tools.lecture

report: $(READY) ## write a page about a class from the files it has handed in (FROM=folder NB=05 SINCE=2026-01-31 ROSTER=class.csv CSV=out.csv OUT=page.html NAMES=0)
	@$(RUN) -m tools.report $(if $(filter 0,$(NAMES)),--no-names) --nb="$$NB" --since="$$SINCE" --roster="$$ROSTER" --csv="$$CSV" --out="$$OUT" -- "$$FROM"

pages: $(READY) ## try the pages of exercises after an edit: does each mistake fit, and differ (NB=03)
	@$(RUN) -m tools.pages "$$NB"

cheatsheet: $(READY) ## write pages to print: cheat sheet, checklist, learning goals, exit questions with a key
	@$(RUN) -m tools.cheatsheet

hub: ## start a hub for a class: for each student an account and a server (as root; HUB=folder PORT=8000 PROXY=1)
	@$(INSTALL_HUB) classroom.hub

accounts: ## make the accounts of a list with lines name:password (as root; FROM=class.txt)
	@$(WITH_HUB) classroom.accounts add "$$FROM"

remove-accounts: ## delete the accounts that make accounts has made, with all work in them (as root; FROM=class.txt FILES=1)
	@$(WITH_HUB) classroom.accounts remove "$$FROM"

collect: ## copy each student's progress from the hub into a folder, with a report (as root; OUT=folder MINE=1)
	@$(WITH_HUB) classroom.collect "$$OUT"

watch: ## show a page during the lesson that says who is where, and who is stuck (as root; NAMES=0)
	@$(WITH_HUB) classroom.watch

publish: $(if $(OUT),$(READY)) ## send changed notebooks to the hub (as root), or write them for another one (OUT=folder)
	@$(if $(OUT),$(RUN) -m classroom.publish "$$OUT",$(WITH_HUB) classroom.publish)

model: $(READY) ## train the model that ships with the project, about two minutes; run it alone
	@$(RUN) -m tools.train_model

circuits: $(READY) ## train the models of notebook 12, and store them with their moments, about a minute
	@$(RUN) -m tools.train_circuits

real: $(READY) ## fetch a published language model for notebook 15 (93 MB)
	@$(RUN) -m tools.real

real-answers: $(READY) ## store what that model says to the questions of notebook 15, a minute
	@$(RUN) -m tools.real_answers

site: $(READY) $(READY_NPM) ## write the series as static pages into site/ (needs npm; URL=https://... for previews of links)
	@$(RUN) -m tools.site

lighthouse: $(READY_DEV) $(READY_LIGHTHOUSE) site ## judge the site as a phone loads it, 15 minutes (needs Chromium, npm; NB=index NB=03)
	@$(RUN) -m tools.lighthouse "$$NB"

wheel: $(READY) ## build a package into dist/: all rooms, the notebooks, the command attention-course
	@rm -rf build/lib build/bdist.*
	@$(RUN) -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir=dist . || { echo "The package could not be built, for the reason above. It takes setuptools from the network: check that, then run the same make command again." >&2; exit 1; }
	@ls dist/*.whl

test: $(READY) ## run the notebooks against their stored outputs, and the tests (TEST_ARGS="-x -k heatmap")
	@$(TEST) -m "not slow" $(TEST_ARGS) notebooks tests

test-slow: $(READY) ## every slow repetition, such as all known mistakes
	@$(TEST) -m slow $(TEST_ARGS) tests

test-two-threads: $(READY) ## run on two threads each notebook that does not ask for one
	@OMP_NUM_THREADS=2 $(TEST) --numprocesses=1 $(TEST_ARGS) $$(grep -L 'torch.set_num_threads(1)' notebooks/*.ipynb)

test-all: ## the three before, one after another
	@$(MAKE) --no-print-directory test
	@$(MAKE) --no-print-directory test-slow
	@$(MAKE) --no-print-directory test-two-threads

# Three workers, as its tests mostly wait for a hub.
test-hub: ## try faults at a real hub with accounts of its own, which it removes (as root)
	@$(INSTALL_HUB) pytest -p tests.plugin -p no:cacheprovider --override-ini addopts=--import-mode=importlib --numprocesses=3 --dist=loadfile --no-loadscope-reorder $(TEST_ARGS) tests/classroom

mutants: $(READY_DEV) ## break random places of the code and see which breaks no test notices (N=60 SEED=7)
	@$(RUN) -m tools.mutants "$$N" "$$SEED"

lint: $(READY_DEV) ## check style and spelling of code and notebooks; count minutes and lines
	@$(RUN) -m ruff check --no-cache .
	@$(RUN) -m ruff format --no-cache --check .
	@$(RUN) -m codespell_lib
	@$(RUN) .venv/bin/lint-imports --no-cache --no-logo
	@$(RUN) -m tools.lint_notebooks
	@$(RUN) -m tools.pace
	@$(RUN) -m tools.budget

format: $(READY_DEV) ## let ruff mend what it can in code and notebooks
	@bash tools/install.sh may-write
	@$(RUN) -m ruff check --no-cache --fix-only .
	@$(RUN) -m ruff format --no-cache .

refresh: $(READY) ## run notebooks and store their outputs in normal form (NB=03 for one, REFRESH_ARGS=--all)
	@$(RUN) -m tools.refresh $(REFRESH_ARGS) $(if $(NB),"$$NB")
	$(if $(NB),,@$(RUN) -m pytest --quiet --snapshot-update --numprocesses=2 $$(find tests -name '*.ambr' | sed 's|__snapshots__/||; s|ambr$$|py|'))

check-upgrade: $(READY) ## run the notebooks with newer packages, or the oldest, in an environment for this only (PKG=torch==2.15.0 or oldest)
	@$(RUN) -m tools.check_upgrade $$PKG

bench: $(READY_DEV) $(READY_NPM) real ## measure imports, pictures and live controls, and try what trains (needs Chromium, npm)
	@failed=""; for script in benchmarks/*.py; do echo "== $$script"; \
	  $(RUN) "$$script" $$(grep -qe --quick "$$script" && echo --quick) || failed="$$failed $$script"; done; \
	  [ -z "$$failed" ] || { echo "Failed:$$failed"; exit 1; }

browser: $(READY_DEV) $(READY_NPM) ## run notebooks, slides, decks and site in a real browser (needs Chromium, npm)
	@$(BROWSE) $(TEST_ARGS) tests/browser

clean: ## remove .venv and caches, never work/
	@bash tools/install.sh clean

$(READY): requirements.txt pyproject.toml tools/install.sh
	@bash tools/install.sh

$(READY_DEV): $(READY)
	@bash tools/install.sh dev

$(READY_SLIDES): $(READY)
	@bash tools/install.sh slides

$(READY_NPM): tools/npm/package-lock.json | $(READY)
	@bash tools/install.sh npm

$(READY_LIGHTHOUSE): tools/lighthouse/package-lock.json | $(READY)
	@bash tools/install.sh lighthouse

FORCE:
