"""Held-out documents under an alteration, compiled again.

The compiler's limits are those of the corpus, which an alteration leaves on purpose; only what the
model itself could not read is left out.

Paper: §4.3, §7.1.
"""

from collections.abc import Sequence

from pdt.contract import parse_contract
from pdt.evaluation.alterations.alteration import Alteration
from pdt.evaluation.generate.batches import Pair
from pdt.evaluation.generate.held_out import held_out
from pdt.records.align import tokenize_document
from pdt.records.compile import Compiler
from pdt.teacher.document import TaughtDocument


def altered_pairs(
    pairs: Sequence[Pair], alteration: Alteration, compiler: Compiler, *, longest: int
) -> list[Pair]:
    """Those of the documents that can be altered so, with prompts of at most `longest` tokens."""
    taught = [
        parse_contract(TaughtDocument, row["document"], where=row["record_id"]) for _, row in pairs
    ]
    found = []
    for document, other in zip(taught, [*taught[1:], *taught[:1]], strict=True):
        altered = alteration.apply(document, other)
        if altered is None:
            continue
        tokens = tokenize_document(altered, compiler.config, compiler.tokenizer)
        if len(tokens.prompt) <= longest:
            row = dict(compiler.label(altered, tokens))
            found.append((held_out(row, compiler.tokenizer), row))
    return found
