"""What a run will cost, as arithmetic on the census: a prediction, and it says so.

Operations of a training step are counted by matrix products and attention; time on a card is that
over its peak rate and a share of it that training is assumed to reach.

Paper: Appendix A, Table 4.
"""

from importlib import resources
from typing import Annotated

import yaml
from pydantic import Field

from pdt.config import PdtConfig
from pdt.config.records import Range
from pdt.contract import Contract, Line
from pdt.model.census import BF16, Census, traffic
from pdt.training.curriculum import stages_of
from pdt.training.losses import WITHOUT_ROLLOUT
from pdt.training.memory import training_memory

REACHED = 0.35
"""Of a card's peak rate: dense training at such sizes reaches 0.25 to 0.45."""
USABLE = 0.92
"""Of a card's memory: the rest is the driver's, the allocator's and NCCL's."""
DEVICES = (1, 2, 4, 8, 16)


class Card(Contract):
    """A device that can be rented."""

    name: Line
    tflops: Annotated[float, Field(gt=0)]
    memory_gb: Annotated[float, Field(gt=0)]
    tb_per_second: Annotated[float, Field(gt=0)]


class Cost(Contract):
    """Of one run of a variant; all of it is predicted."""

    prompt_tokens: int
    section_tokens: int
    """Of a document in the middle of the preset's limits."""
    documents: int
    """Read in training, with repetition."""
    training_flops: float
    evaluation_flops: float
    decode_bytes: float
    """Weights that generation reads in evaluation."""
    training_bytes: dict[str, int]
    """Memory of each device, by the number of devices; BF16 with FP32 masters."""


def cards() -> tuple[Card, ...]:
    text = (resources.files("pdt.screen") / "cards.yaml").read_text(encoding="utf-8")
    return tuple(Card.model_validate(row) for row in yaml.safe_load(text))


def predict_cost(
    config: PdtConfig, census: Census, *, judged_documents: int, conditions: int, batch: int
) -> Cost:
    """Training by the whole curriculum, and an evaluation of so many documents and conditions."""
    limits = config.records.limits
    prompt, section = _middle(limits.source_tokens), _middle(limits.section_tokens)
    optimizer = config.training.optimizer
    size = optimizer.batch_documents * optimizer.accumulation
    flops, documents = 0.0, 0
    for stage in stages_of(config.training):
        count = (stage.stop_step - stage.first_step) * size
        documents += count
        whole = bool(set(stage.losses) - WITHOUT_ROLLOUT)
        flops += count * document_flops(config, census, prompt, section, lanes_train=whole)
    lanes = config.lanes.count
    forward = 2 * (census.total - census.coordination["heads"]) * (prompt + lanes * section)
    generations = judged_documents * conditions
    turns = generations / batch * section
    return Cost(
        prompt_tokens=prompt,
        section_tokens=section,
        documents=documents,
        training_flops=flops,
        evaluation_flops=float(generations * forward),
        decode_bytes=turns * traffic(config, census).packed_round * BF16,
        training_bytes={
            str(count): training_memory(
                config,
                census,
                prompt_tokens=prompt,
                section_tokens=section,
                batch=optimizer.batch_documents,
                gpus=count,
            ).total
            for count in DEVICES
            if optimizer.accumulation % count == 0
        },
    )


def document_flops(
    config: PdtConfig, census: Census, prompt: int, section: int, *, lanes_train: bool
) -> float:
    """One document forward and backward; with the planner alone no section is read."""
    shape, lanes = config.trunk.shape, config.lanes.count
    lower = census.shared[f"layers 0–{config.lanes.fork_layer - 1}"]
    planner = 6 * (census.coordination["planner"] + census.coordination["plan memory"]) * prompt
    attention = 4 * shape.query_heads * shape.head_width  # scores and values, by token pair
    own_pairs = prompt * prompt / 2
    if not lanes_train:
        return 2 * lower * prompt + attention * config.lanes.fork_layer * own_pairs + planner
    pairs = section * (prompt + section / 2)
    below: float = 2 * lower * (prompt + lanes * section)
    below += attention * config.lanes.fork_layer * (own_pairs + lanes * pairs)
    again = 1 if config.training.recompute else 0
    bases = sum(count for name, count in census.shared.items() if name.startswith("projections"))
    tokens = lanes * (prompt + section)
    reads = census.coordination["Plan-KV"] + census.coordination["SNC"]
    above = (6 + 2 * again) * (census.physical_total / lanes + reads) * tokens
    above += (4 + 2 * again) * bases * tokens  # no gradient of a frozen weight
    above += (3 + again) * attention * config.upper_layers * lanes * (own_pairs + pairs)
    head = 4 * shape.vocabulary * shape.width * lanes * section
    return below + above + head + planner


def devices_for(cost: Cost, card: Card) -> int | None:
    """The fewest devices of this kind that hold a training step; None where none of these do."""
    room = card.memory_gb * 1e9 * USABLE
    fits = [int(count) for count, size in cost.training_bytes.items() if size <= room]
    return min(fits, default=None)


def hours_on(cost: Cost, card: Card) -> float:
    """Device hours of one run, training and evaluation."""
    rate = card.tflops * 1e12 * REACHED
    decoding = max(cost.evaluation_flops / rate, cost.decode_bytes / (card.tb_per_second * 1e12))
    return (cost.training_flops / rate + decoding) / 3600


def _middle(limits: Range) -> int:
    return (limits.min + limits.max) // 2
