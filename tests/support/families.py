"""Small random decoders of each supported family, made and saved by `transformers` itself."""

from pathlib import Path
from typing import Any

import torch
import transformers

COMMON = dict(
    hidden_size=48,
    intermediate_size=80,
    num_hidden_layers=4,
    num_attention_heads=4,
    num_key_value_heads=2,
    vocab_size=101,
    max_position_embeddings=256,
    attention_dropout=0.0,
    bos_token_id=None,
    eos_token_id=2,
)
LLAMA3 = dict(
    rope_type="llama3",
    factor=8.0,
    low_freq_factor=1.0,
    high_freq_factor=4.0,
    original_max_position_embeddings=64,
)
YARN = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=64)
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama, tied": ("Llama", dict(tie_word_embeddings=True)),
    "llama, untied, one kv head": ("Llama", dict(num_key_value_heads=1, tie_word_embeddings=False)),
    "llama, llama3 rope": ("Llama", dict(rope_parameters=LLAMA3 | {"rope_theta": 500000.0})),
    "llama, linear rope": (
        "Llama",
        dict(rope_parameters=dict(rope_type="linear", factor=2.0, rope_theta=10000.0)),
    ),
    "qwen2, qkv bias": ("Qwen2", dict(tie_word_embeddings=True)),
    "qwen2, yarn": ("Qwen2", dict(rope_parameters=YARN | {"rope_theta": 1000000.0})),
    "qwen3, qk-norm, wide heads": ("Qwen3", dict(head_dim=20, tie_word_embeddings=True)),
    "qwen3, untied": ("Qwen3", dict(head_dim=12, tie_word_embeddings=False)),
}


def make_plain(variant: str) -> Any:
    """The plain `transformers` model, every parameter random (norms and biases too)."""
    family, options = VARIANTS[variant]
    torch.manual_seed(7)
    config = getattr(transformers, f"{family}Config")(**(COMMON | options))
    config._attn_implementation = "eager"
    model = getattr(transformers, f"{family}ForCausalLM")(config)
    for name, parameter in model.named_parameters():
        spread = 0.3 if "norm" in name else 0.12
        parameter.data.add_(torch.randn_like(parameter) * spread)
    return model.eval()


def save_plain(model: Any, path: Path, *, shard: str = "1GB") -> Path:
    model.save_pretrained(path, max_shard_size=shard)
    return path
