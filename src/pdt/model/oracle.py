"""The teacher's plans in the planner's place.

Paper: §6, Table 3 (oracle plans).
"""

from pdt.model.planner import PlanSet
from pdt.records.batch import RecordBatch


def oracle_plans(batch: RecordBatch) -> PlanSet:
    """The teacher's outlines as they are: nodes, validity and order of the record."""
    return PlanSet(
        batch.plan_targets_BKNP, batch.node_valid_BKN, -batch.presentation_rank_BK.float()
    )
