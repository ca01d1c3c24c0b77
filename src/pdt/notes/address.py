"""The headers of a note: who wrote it, whether it is the reader's own, how long ago.

They say where a note comes from and carry no payload: they are the same whatever was written.

Paper: §3.5.
"""

import torch
from torch import Tensor, nn

OWN, SIBLING = 0, 1


class NoteAddress(nn.Module):
    """Learned producer, kind and log-lag embeddings, added to a note before its key and value.

    Kind says whether the note is the reader's own: SNC's maps are shared by all lanes, so without
    it a lane could not tell its own notes from a sibling's (docs/gaps.md).

    Paper: §3.5.
    """

    reader_K: Tensor
    """The lanes that read, in the order of the lane axis."""

    def __init__(self, lanes: int, width: int) -> None:
        super().__init__()
        self.producer = nn.Embedding(lanes, width)
        self.kind = nn.Embedding(2, width)
        self.log_lag = nn.Linear(1, width, bias=False)
        # As small as the other tables: a header must not drown the note it addresses.
        nn.init.normal_(self.producer.weight, std=0.02)
        nn.init.normal_(self.kind.weight, std=0.02)
        self.register_buffer("reader_K", torch.arange(lanes), persistent=False)

    def forward(self, producer_Q: Tensor, lag_Q: Tensor) -> Tensor:
        """The header of every note as each lane sees it: [K, Q, E]."""
        return self.header(
            producer_Q, torch.where(self.reader_K[:, None] == producer_Q, OWN, SIBLING), lag_Q
        )

    def header(self, producer: Tensor, kind: Tensor, lag: Tensor) -> Tensor:
        """The header of single notes; the arguments broadcast."""
        log_lag = lag.to(self.log_lag.weight.dtype).log()[..., None]
        return self.producer(producer) + self.kind(kind) + self.log_lag(log_lag)
