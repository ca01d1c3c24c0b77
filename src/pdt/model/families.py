"""Which pretrained decoders can be split: their configuration → `TrunkShape`, or a refusal.

Everything a configuration can say that would change the computation is read or refused; nothing is
loaded by half.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from pdt.config import RopeConfig, TrunkShape
from pdt.errors import TrunkRefused
from pdt.terms import RopeScaling, TrunkFamily

SUPPORTED = "Supported: dense RoPE decoders of the families llama (SmolLM2), qwen2 and qwen3."


def shape_from_hf(config: Mapping[str, Any], where: str) -> TrunkShape:
    """A Hugging Face `config.json` of any vintage."""
    family = _family(config.get("model_type"), where)
    refuse = _Refuser(where)
    refuse.when("quantization_config" in config, "quantized weights (quantization_config)")
    refuse.when(config.get("hidden_act") != "silu", f"hidden_act {config.get('hidden_act')!r}")
    refuse.when(bool(config.get("use_sliding_window")), "sliding-window attention")
    kinds = set(config.get("layer_types") or ()) - {"full_attention"}
    refuse.when(bool(kinds), f"layer types {sorted(kinds)}")
    # In llama and qwen3 this flag also puts a bias on the output projection.
    biased = bool(config.get("attention_bias")) and family is not TrunkFamily.QWEN2
    refuse.when(biased, "attention_bias")
    refuse.when(bool(config.get("mlp_bias")), "mlp_bias")
    refuse.when(config.get("partial_rotary_factor", 1.0) != 1.0, "partial rotary positions")
    heads = _number(config, "num_attention_heads", where)
    width = _number(config, "hidden_size", where)
    return _shape(
        where,
        family=family,
        layers=_number(config, "num_hidden_layers", where),
        width=width,
        query_heads=heads,
        kv_heads=config.get("num_key_value_heads") or heads,
        head_width=config.get("head_dim") or width // heads,
        feed_forward=_number(config, "intermediate_size", where),
        vocabulary=_number(config, "vocab_size", where),
        tied_head=bool(config.get("tie_word_embeddings", False)),
        norm_eps=config.get("rms_norm_eps", 1e-6),
        max_positions=_number(config, "max_position_embeddings", where),
        rope=_rope_from_hf(config, refuse),
    )


def shape_from_gguf(
    fields: Mapping[str, Any], tensors: Mapping[str, tuple[int, ...]], where: str
) -> TrunkShape:
    """The metadata of a GGUF file; vocabulary and tying are read off its tensors."""
    family = _family(fields.get("general.architecture"), where)
    own = {
        key.removeprefix(f"{family}."): value
        for key, value in fields.items()
        if key.startswith(f"{family}.")
    }
    refuse = _Refuser(where)
    refuse.when(bool(own.get("expert_count")), "mixture of experts")
    refuse.when(bool(own.get("attention.sliding_window")), "sliding-window attention")
    refuse.when(
        "rope_freqs.weight" in tensors,
        "per-frequency rope factors (rope_freqs.weight); use the Hugging Face directory instead",
    )
    heads = _number(own, "attention.head_count", where)
    width = _number(own, "embedding_length", where)
    kind = own.get("rope.scaling.type", "none")
    refuse.when(kind not in ("none", "linear", "yarn"), f"rope type {kind!r}")
    rope = {
        "theta": own.get("rope.freq_base", 10000.0),
        "scaling": RopeScaling.NONE if kind == "none" else RopeScaling(kind),
        "factor": own.get("rope.scaling.factor", 1.0),
        "original_positions": own.get("rope.scaling.original_context_length"),
    }
    return _shape(
        where,
        family=family,
        layers=_number(own, "block_count", where),
        width=width,
        query_heads=heads,
        kv_heads=own.get("attention.head_count_kv") or heads,
        head_width=own.get("attention.key_length") or width // heads,
        feed_forward=_number(own, "feed_forward_length", where),
        vocabulary=tensors.get("token_embd.weight", (0,))[0],
        tied_head="output.weight" not in tensors,
        norm_eps=round(own.get("attention.layer_norm_rms_epsilon", 1e-6), 12),
        max_positions=_number(own, "context_length", where),
        rope=rope,
    )


def _rope_from_hf(config: Mapping[str, Any], refuse: "_Refuser") -> dict[str, Any]:
    """`rope_parameters` (transformers 5) or `rope_theta` with `rope_scaling` (before)."""
    scaling: Mapping[str, Any] = config.get("rope_parameters") or config.get("rope_scaling") or {}
    nested = any(isinstance(value, Mapping) for value in scaling.values())
    refuse.when(nested, "rope parameters that differ between layers")
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    refuse.when(kind not in set(RopeScaling), f"rope type {kind!r}")
    refuse.when("mscale" in scaling or "mscale_all_dim" in scaling, "rope mscale parameters")
    refuse.when(scaling.get("partial_rotary_factor", 1.0) != 1.0, "partial rotary positions")
    original = scaling.get("original_max_position_embeddings")
    if original is None and kind == RopeScaling.YARN:
        original = config.get("max_position_embeddings")
    names = {
        "factor": "factor",
        "low_frequency_factor": "low_freq_factor",
        "high_frequency_factor": "high_freq_factor",
        "beta_fast": "beta_fast",
        "beta_slow": "beta_slow",
        "truncate": "truncate",
        "attention_factor": "attention_factor",
    }
    given = {
        ours: scaling[theirs] for ours, theirs in names.items() if scaling.get(theirs) is not None
    }
    theta = scaling.get("rope_theta", config.get("rope_theta", 10000.0))
    return {"theta": theta, "scaling": kind, "original_positions": original, **given}


def _family(name: object, where: str) -> TrunkFamily:
    try:
        return TrunkFamily(str(name))
    except ValueError:
        kind = " (mixture of experts)" if "moe" in str(name).lower() or name == "mixtral" else ""
        raise TrunkRefused(
            f"{where} is a {name!r} model{kind}, which pdt cannot split.\n{SUPPORTED}"
        ) from None


def _shape(where: str, **fields: Any) -> TrunkShape:
    fields["rope"] = {k: v for k, v in fields["rope"].items() if v is not None}
    try:
        return TrunkShape(**{**fields, "rope": RopeConfig(**fields["rope"])})
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, p['loc'])) or 'shape'}: {p['msg']}" for p in error.errors()
        )
        raise TrunkRefused(
            f"{where} does not describe a decoder pdt can split: {problems}.\n{SUPPORTED}"
        ) from error


def _number(config: Mapping[str, Any], key: str, where: str) -> int:
    value = config.get(key)
    if not isinstance(value, int) or isinstance(value, bool):
        raise TrunkRefused(
            f"{where}: {key} is {value!r}, expected a whole number.\nTake the file again."
        )
    return value


class _Refuser:
    def __init__(self, where: str) -> None:
        self.where = where

    def when(self, condition: bool, what: str) -> None:
        if condition:
            raise TrunkRefused(f"{self.where} uses {what}, which pdt cannot split.\n{SUPPORTED}")
