"""What the batches of one step, or of one evaluation, add up to.

Losses are means over documents. Tokens and codes are counted: a speed is then of tokens really
read, and a share of codes is that of all notes together.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from pdt.config import PdtConfig
from pdt.model.pdt import ParallelDecoder
from pdt.records.batch import RecordBatch
from pdt.terms import Loss
from pdt.training.losses import Computed
from pdt.training.ranks import Ranks
from pdt.training.watch.metrics import PLANS_APART

Numbers = dict[str, float]


@dataclass
class Tally:
    """The running sums."""

    documents: int = 0
    prompt_tokens: int = 0
    section_tokens: int = 0
    sums: Numbers = field(default_factory=dict)
    code_counts_MC: Tensor | None = None

    def add(self, batch: RecordBatch, computed: Computed, total: Tensor) -> None:
        """Count one batch; sections only where they were written."""
        size = len(batch.record_ids)
        self.documents += size
        self.prompt_tokens += int(batch.prompt_valid_BS.sum())
        self.section_tokens += int(batch.token_valid_BKT.sum()) if computed.rolled_out else 0
        values = {loss.value: part.item() for loss, part in computed.parts.items()}
        if computed.plans_apart is not None:
            values[PLANS_APART] = computed.plans_apart.item()
        if computed.usage_deficit_M is not None:
            deficits = computed.usage_deficit_M.tolist()
            values |= {f"usage_deficit_{m}": value for m, value in enumerate(deficits)}
        for name, value in {"loss": total.item(), **values}.items():
            self.sums[name] = self.sums.get(name, 0.0) + value * size
        if computed.code_counts_MC is not None:
            counts = computed.code_counts_MC
            before = 0 if self.code_counts_MC is None else self.code_counts_MC
            self.code_counts_MC = before + counts

    def of_all(self, ranks: Ranks, config: PdtConfig) -> "Tally":
        """The same over the documents of every rank."""
        if ranks.count == 1:
            return self
        counts = ["documents", "prompt_tokens", "section_tokens"]
        deficits = [f"usage_deficit_{m}" for m in range(config.notes.codebooks)]
        names = ["loss", *(loss.value for loss in Loss), PLANS_APART, *deficits]
        mine = self.sums | {name: float(getattr(self, name)) for name in counts}
        found = ranks.sum_named(mine, [*counts, *names])
        documents, prompt, section = (int(found.pop(name)) for name in counts)
        whole = Tally(documents, prompt, section, found)
        if ranks.highest(int(self.code_counts_MC is not None)):
            shape = (config.notes.codebooks, config.notes.codes)
            codes_MC = torch.zeros(shape, dtype=torch.int64)
            if self.code_counts_MC is not None:
                codes_MC += self.code_counts_MC.cpu()
            whole.code_counts_MC = ranks.sum(codes_MC)
        return whole

    def numbers(self) -> Numbers:
        """Means and counts by name."""
        found: Numbers = {
            "prompt_tokens": self.prompt_tokens,
            "section_tokens": self.section_tokens,
        }
        found |= {name: value / self.documents for name, value in self.sums.items()}
        if self.code_counts_MC is not None:
            shares = (self.code_counts_MC > 0).float().mean(1).tolist()
            found["notes"] = int(self.code_counts_MC[0].sum())
            found |= {f"codes_in_use_{m}": share for m, share in enumerate(shares)}
        return found


def gate_values(model: ParallelDecoder) -> Numbers:
    """How far every read is open: σ of the residual gates, and SNC's inner gate, layer by layer.

    Paper: §3.4, §3.5, Fig. 2.
    """
    layers = model.lane_layers
    values = [
        torch.stack([layer.plan_kv.residual_gate for layer in layers]).sigmoid(),
        torch.stack([layer.snc.residual_gate for layer in layers]).sigmoid(),
        torch.stack([layer.snc.inner_gate for layer in layers]),
    ]
    names = ("plan_gate", "notes_gate", "inner_gate")
    return {
        f"{name}_{index}": value
        for name, of_layers in zip(names, torch.stack(values).detach().tolist(), strict=True)
        for index, value in enumerate(of_layers)
    }
