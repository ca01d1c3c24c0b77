"""The memory of a training step on each device, as arithmetic on the census.

`peak` counts the same on the real step, without a device; this is for many devices in BF16.

Paper: Appendix A.
"""

from pdt.config import PdtConfig
from pdt.model.census import BF16, FP32, Census, Memory, kv_bytes
from pdt.training.weight_gradients import ROWS


def training_memory(
    config: PdtConfig,
    census: Census,
    *,
    prompt_tokens: int,
    section_tokens: int,
    batch: int = 1,
    gpus: int = 1,
) -> Memory:
    """Bytes on each device, in BF16 with FP32 masters: all that exists in a step's last batch.

    A bound from above: activations and whole gradients do not peak at the same moment.

    FP32 masters, the gradient to step with and AdamW's moments lie in shards. Every block passes
    all upper layers, so their BF16 views and gradients are whole on each device for a step, and an
    FP32 sum of gradients too where a device takes several batches a step (training/engine.py).
    """
    upper = census.physical_total + census.coordination["Plan-KV"] + census.coordination["SNC"]
    trained = census.physical_total + census.coordination_total
    small = trained - upper  # planner, plan memory, note writer, heads: FP32 throughout
    turns = max(1, config.training.optimizer.accumulation // gpus)
    layer = upper // config.upper_layers
    lower = census.shared[f"layers 0–{config.lanes.fork_layer - 1}"]
    trunk, travelling = census.shared_total, 0
    if config.training.shard_trunk and gpus > 1:
        trunk -= lower - lower // gpus
        travelling = 2 * lower // config.lanes.fork_layer  # one in use, one on its way
    gradients = upper * BF16 + small * FP32
    return Memory(
        {
            "trunk weights (BF16, frozen)": (trunk + travelling) * BF16,
            "FP32 masters (in shards)": -(-trained // gpus) * FP32,
            "AdamW moments (FP32, in shards)": -(-trained // gpus) * 2 * FP32,
            "trained weights (BF16 views, whole)": upper * BF16 + small * FP32,
            "gradients of a batch (BF16, whole)": gradients,
            "sum of gradients (FP32, whole)": upper * FP32 if turns > 1 else 0,
            "gradients to step with (FP32, in shards)": 0
            if turns > 1 and gpus == 1
            else (-(-trained // gpus) * FP32),
            "one layer on its way to other devices (FP32)": 2 * layer * FP32 if gpus > 1 else 0,
            "activations": activation_memory(
                config, prompt_tokens=prompt_tokens, section_tokens=section_tokens, batch=batch
            ),
        }
    )


def activation_memory(
    config: PdtConfig, *, prompt_tokens: int, section_tokens: int, batch: int = 1
) -> int:
    """Bytes of one batch of documents with recomputation, in BF16.

    Every upper layer keeps its input, keys and values; one layer at a time is recomputed whole, or
    every layer has rows that wait for the product of their gradients, whichever is more.
    """
    shape, lanes, upper = config.trunk.shape, config.lanes.count, config.upper_layers
    tokens = batch * (config.prompt_lanes * prompt_tokens + lanes * section_tokens)
    kept = tokens * upper * (shape.width * BF16 + kv_bytes(config, BF16))
    query = shape.query_heads * shape.head_width
    rows = max(tokens, lanes * upper * ROWS)
    recomputed = rows * (4 * shape.width + 2 * query + 3 * shape.feed_forward) * BF16
    block = batch * lanes * config.lanes.block_tokens
    scores = block * shape.query_heads * (prompt_tokens + section_tokens) * (FP32 + BF16)
    logits = block * shape.vocabulary * FP32 * 2
    trunk_states = tokens * shape.width * BF16
    return kept + recomputed + scores + logits + trunk_states
