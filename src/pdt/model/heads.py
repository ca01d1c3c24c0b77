"""The semantic heads that the training losses read; generation does not use them.

Paper: §5.2.
"""

import torch.nn.functional as F
from torch import Tensor, nn

from pdt.config import PdtConfig


class RouteHead(nn.Module):
    """Scores every plan node against every fact: which node owns it. Paper: §5.2."""

    def __init__(self, config: PdtConfig) -> None:
        super().__init__()
        width = config.heads.width
        self.node = nn.Linear(config.planner.width, width)
        self.fact = nn.Linear(config.heads.fact_width, width)

    def forward(self, nodes_BKNP: Tensor, facts_BFd: Tensor) -> Tensor:
        node, fact = self.node(nodes_BKNP), self.fact(facts_BFd)
        return (node.flatten(1, 2) @ fact.transpose(1, 2)).unflatten(
            1, nodes_BKNP.shape[1:3]
        ) * node.shape[-1] ** -0.5  # [B, K, N, F]


class ProgressHead(nn.Module):
    """Scores a block-final state against the lane's plan nodes. Paper: §5.2."""

    def __init__(self, config: PdtConfig) -> None:
        super().__init__()
        width = config.heads.width
        self.block = nn.Linear(config.trunk.shape.width, width)
        self.node = nn.Linear(config.planner.width, width)

    def forward(self, h_BKUD: Tensor, nodes_BKNP: Tensor) -> Tensor:
        block, node = self.block(h_BKUD.to(self.block.weight.dtype)), self.node(nodes_BKNP)
        return block @ node.transpose(-1, -2) * block.shape[-1] ** -0.5  # [B, K, U, N]


class FactWriteHead(nn.Module):
    """For each lane, block and fact: OWNER, REFERENCE or ABSENT. Paper: §5.2."""

    def __init__(self, config: PdtConfig) -> None:
        super().__init__()
        width = config.heads.width
        self.block = nn.Linear(config.trunk.shape.width, width)
        self.fact = nn.Linear(config.heads.fact_width, width)
        self.classifier = nn.Linear(width, 3)

    def forward(self, h_BKUD: Tensor, facts_BFd: Tensor) -> Tensor:
        block, fact = self.block(h_BKUD.to(self.block.weight.dtype)), self.fact(facts_BFd)
        joint = block[:, :, :, None] + fact[:, None, None]  # [B, K, U, F, width]
        return self.classifier(F.gelu(joint))


class SemanticHeads(nn.Module):
    """All heads, as one module that a curriculum stage trains or freezes."""

    def __init__(self, config: PdtConfig) -> None:
        super().__init__()
        self.route = RouteHead(config)
        self.progress = ProgressHead(config)
        self.fact_write = FactWriteHead(config)
