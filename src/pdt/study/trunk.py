"""Nano's trunk: stories15M with Chronicle's vocabulary, adapted to Chronicle, as a model directory.

config.json  model.safetensors  tokenizer.json      a Hugging Face Llama, ready to be split
step-000050/                                         where a killed adaptation goes on
"""

from collections.abc import Callable
from pathlib import Path

from safetensors.torch import save_file

from pdt.config import PdtConfig, TrunkShape
from pdt.provenance import atomic_path, write_json
from pdt.records.batch import RecordShards
from pdt.study.adapt import Adaptation, PlainDecoder, adapt
from pdt.study.embedding import re_embed
from pdt.study.stories import read_stories
from pdt.tokenizer import load_tokenizer


def make_trunk(
    stories: Path,
    shards: RecordShards,
    config: PdtConfig,
    how: Adaptation,
    directory: Path,
    watch: Callable[[int, dict[str, float]], None] = lambda step, numbers: None,
) -> None:
    """Re-embed, adapt and write; a directory that holds a state goes on from it."""
    directory.mkdir(parents=True, exist_ok=True)
    shape, student = config.trunk.shape, load_tokenizer(config.records.tokenizer)
    pretrained = read_stories(stories)
    decoder = PlainDecoder(shape)
    embedding = re_embed(pretrained, student, shape.vocabulary)
    decoder.load_state_dict(pretrained.tensors | {"embed_tokens.weight": embedding})
    adapt(decoder, shards, how, directory, watch)
    tensors = {f"model.{name}": value.contiguous() for name, value in decoder.state_dict().items()}
    with atomic_path(directory / "tokenizer.json") as partial:
        partial.write_text(student.as_json(), encoding="utf-8")
    with atomic_path(directory / "model.safetensors") as partial:
        save_file(tensors, partial)
    write_json(directory / "config.json", _llama(shape))


def _llama(shape: TrunkShape) -> dict[str, object]:
    """The shape as Hugging Face writes it."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "num_hidden_layers": shape.layers,
        "hidden_size": shape.width,
        "num_attention_heads": shape.query_heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_width,
        "intermediate_size": shape.feed_forward,
        "vocab_size": shape.vocabulary,
        "tie_word_embeddings": shape.tied_head,
        "rms_norm_eps": shape.norm_eps,
        "max_position_embeddings": shape.max_positions,
        "rope_theta": shape.rope.theta,
        "torch_dtype": "float32",
    }
