"""The one active plan node of every block. Paper: §4.3, §5.2 (outline progress)."""

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from pdt.records.align import LaneTokens
from pdt.records.arrays import PAD
from pdt.teacher.answer import Plan, TargetSection


def nodes_of_tokens(section: TargetSection, plan: Plan, tokens: LaneTokens) -> list[int]:
    """The node whose target paragraph each token writes.

    The break after a paragraph, and EOS, belong to the paragraph they end.
    """
    node_of_paragraph = {
        paragraph: node
        for node, planned in enumerate(plan.nodes)
        for paragraph in planned.target_paragraphs
    }
    starts = [start for start, _ in section.spans]
    nodes = [node_of_paragraph[bisect_right(starts, start) - 1] for start in tokens.starts]
    return [*nodes, node_of_paragraph[len(starts) - 1]]


def active_nodes(
    sections: Sequence[TargetSection], plans: Sequence[Plan], tokens_K: Sequence[LaneTokens]
) -> np.ndarray:
    """The node that occupies most of each block, `[K, U]`; the earlier one of two equals."""
    active_KU = np.full((len(tokens_K), max(t.blocks for t in tokens_K)), PAD, dtype=np.int8)
    for lane, tokens in enumerate(tokens_K):
        nodes = np.array(nodes_of_tokens(sections[lane], plans[lane], tokens))
        for block in range(tokens.blocks):
            first = block * tokens.block_tokens
            counts = np.bincount(nodes[first : first + tokens.block_tokens])
            active_KU[lane, block] = int(counts.argmax())
    return active_KU
