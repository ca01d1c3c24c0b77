"""What a reader must know of a run before its numbers."""

from pdt.evaluation.lines.raw import Raw
from pdt.evaluation.report.results import Results
from pdt.evaluation.report.shown import verdict_line


def facts_of_run(results: Results, raw: Raw) -> list[str]:
    """What a reader must know before the numbers."""
    settings = results.settings
    limits = settings.longform
    scaled = (limits.tokens, limits.paragraphs) != (700, 4)
    return [
        verdict_line(results),
        f"{len(raw.documents)} held-out documents of the split "
        f"{', '.join(sorted({d.split for d in raw.documents}))}; "
        f"{settings.confidence:.0%} intervals over documents from {settings.resamples:,} "
        "bootstrap resamples, paired where conditions share documents.",
        f"A condition starts from the oracle plan where it says so, else from the {settings.plan} "
        f"plan. Judged by the {settings.screen} screen: a screen, not an audit.",
        f"Destructive controls and harder gates are measured on the first {settings.few_documents} "
        "documents that they can be asked of; n says how many where it is not all.",
        *_dealt(raw),
        f"A lane is long-form with at least {limits.tokens} tokens and {limits.paragraphs} "
        "paragraphs and at most 10% of sentences under eight words"
        + (
            "; the two minimums are scaled to this corpus's sections (the paper's are 700 and 4)."
            if scaled
            else "."
        ),
        *_unread(raw),
        *(f"Checkpoint {role}: `{digest[:16]}`." for role, digest in results.models.items()),
    ]


def _dealt(raw: Raw) -> list[str]:
    """Where the division of a document stands, and whose documents H1 is asked of."""
    dealt = sum(not document.told for document in raw.documents)
    if not dealt:
        return [
            "No document of this corpus has a division that only the plan knows: H1 is measured on "
            "its documents with their facts dealt anew."
        ]
    return [
        f"In {dealt} documents only the plan knows the division: learned plans are not asked of "
        "them, and where a condition starts from the learned plan they start from the oracle's."
    ]


def _unread(raw: Raw) -> list[str]:
    unread = sum(len(document.unread_choices) for document in raw.documents)
    if not unread:
        return []
    coined = unread + sum(len(document.choices) for document in raw.documents)
    return [
        f"{unread} of {coined} coined dependencies are in no measure of bits or agreement: no "
        "words lead to the coined one at both ends, or its alternatives are not listed or begin "
        "with the same token."
    ]
