"""The endless stream of training documents, which can be opened at any place.

Paper: §6.
"""

from collections.abc import Iterator
from itertools import islice

from pdt.errors import UsageError
from pdt.records.batch import RecordBatch, RecordShards


class DocumentStream:
    """Batches of a corpus, epoch after epoch, each shuffled by the seed and its number."""

    def __init__(
        self, shards: RecordShards, *, batch_documents: int, seed: int, alike: int = 1
    ) -> None:
        self.shards, self.seed, self.size, self.alike = shards, seed, batch_documents, alike
        self.documents = len(shards)
        if self.documents < batch_documents:
            raise UsageError(
                f"{shards.directory} holds {self.documents} documents to train on, and a batch "
                f"takes {batch_documents}.\n"
                "Compile more, or lower training.optimizer.batch_documents."
            )

    def batches(
        self, position: int, *, rank: int = 0, ranks: int = 1
    ) -> Iterator[tuple[int, RecordBatch]]:
        """This rank's batches from the document at `position` on, each with its first one's place.

        Batches are dealt in turn, so the ranks together read what one process would. An epoch's
        incomplete last batch is left out.
        """
        per_epoch = self.documents // self.size
        epoch, skip = divmod(position // self.size, per_epoch)
        while True:
            batches = self.shards.batches(
                self.size, seed=self.seed + epoch, skip=skip * self.size, alike=self.alike
            )
            first = epoch * per_epoch + skip
            for number, batch in enumerate(islice(batches, per_epoch - skip), first):
                if number % ranks == rank:
                    yield number * self.size, batch
            epoch, skip = epoch + 1, 0
