"""Files that `make weights` takes, and the mark of a test that reads one."""

import os
from pathlib import Path

import pytest

CACHE = Path(__file__).parents[2] / ".cache"
QWEN = CACHE / "qwen3/tokenizer.json"
MINILM = CACHE / "all-MiniLM-L6-v2"
SMOLLM2 = Path(os.environ.get("PDT_SMOLLM2", CACHE / "SmolLM2-135M-Instruct.Q4_1.gguf"))

needs_qwen = pytest.mark.weights(QWEN)
needs_minilm = pytest.mark.weights(MINILM / "model.safetensors")


def skip_without_weights(item: pytest.Item) -> None:
    """`@pytest.mark.weights(file)`: the test is skipped, and says so, where the file is not."""
    for mark in item.iter_markers("weights"):
        missing = [path for path in mark.args if not path.is_file()]
        if missing:
            pytest.skip(f"{missing[0].name} is not here: make weights")
