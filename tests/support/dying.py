"""A run that is killed as it is about to save a step, on its last rank: metrics are written, the
checkpoint is not.

    python tests/support/dying.py CONFIG RECORDS RUN STEP
"""

import os
import signal
import sys
from pathlib import Path

from pdt.config import PdtConfig
from pdt.model.build import random_model
from pdt.records.batch import RecordShards
from pdt.terms import Split
from pdt.training.checkpoint import latest_checkpoint
from pdt.training.loop import Trainer


class Dying(Trainer):
    """A trainer that does not outlive one step."""

    last = 0

    def save(self) -> None:
        if self.progress.step == self.last and self.ranks.rank == self.ranks.count - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        super().save()


if __name__ == "__main__":
    tree, records, run, step = sys.argv[1:]
    Dying.last = int(step)
    config = PdtConfig.model_validate_json(Path(tree).read_text())
    shards = RecordShards(Path(records), split=Split.TRAIN)
    if latest_checkpoint(Path(run)):
        trainer = Dying.resume(shards, Path(run), config)
    else:
        trainer = Dying(random_model(config, seed=0), shards, Path(run))
    trainer.train()
