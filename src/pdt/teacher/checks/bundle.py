"""The article against the immutable bundle it came from. Paper: §4.1, §4.2."""

from pathlib import Path

from pdt.errors import PdtError
from pdt.sources.bundle import read_bundle, read_citations
from pdt.teacher.checks.rules import CheckFailure, Failures
from pdt.teacher.document import TaughtDocument


def check_bundle(document: TaughtDocument, root: Path) -> list[CheckFailure]:
    """What disagrees between the document's article and its bundle under `root`."""
    found, article = Failures(document.record_id), document.article
    directory = root / article.bundle_id
    try:
        bundle = read_bundle(directory)
        citations = {citation.id: citation for citation in read_citations(directory, bundle)}
    except PdtError as error:
        found.add("bundle_present", str(error).splitlines()[0], "a whole bundle")
        return found.found
    if article.title != bundle.title:
        found.add("bundle_citations", f"title {article.title!r}", f"title {bundle.title!r}")
    for citation in article.citations:
        if citations.get(citation.id) != citation:
            found.add(
                "bundle_citations",
                f"citation {citation.id} is {citation.text!r}",
                f"{citations[citation.id].text!r}" if citation.id in citations else "in the bundle",
            )
    return found.found
