"""The final directory: the verdict, the audit, and what follows from both.

    verdict/           as `pdt eval run` wrote it
    audit/             as `pdt audit close` wrote it
    adjudicated.json   measures and gates, screened and adjudicated
    differences.jsonl  where people and the screen differ
    report.md, .html   the same, to read

Paper: §7.2, Table 3.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

from pdt.audit.adjudicated.report import render_html, render_markdown
from pdt.audit.adjudicated.results import Adjudicated, Difference, compare, differences
from pdt.audit.decisions import decided
from pdt.audit.directory import StoredAudit
from pdt.audit.verify import verify_audit
from pdt.evaluation.lines.raw import Raw, read_raw
from pdt.evaluation.report.results import Results
from pdt.evaluation.verify.verify import Verified, verify_results
from pdt.provenance import MANIFEST, atomic_path, new_directory, sha256_file, write_manifest

VERDICT, AUDIT = "verdict", "audit"
RESULTS, DIFFERENCES = "adjudicated.json", "differences.jsonl"
MARKDOWN, PAGE = "report.md", "report.html"
FILES = (RESULTS, DIFFERENCES, MARKDOWN, PAGE)
MADE_BY = "pdt eval report --audit"


@dataclass(frozen=True)
class Final:
    """The final rates with what they were made from, all of it verified."""

    verified: Verified
    audit: StoredAudit
    adjudicated: Adjudicated
    differences: tuple[Difference, ...]

    @property
    def results(self) -> Results:
        return self.verified.results


def finish(verdict: Path, audit: Path) -> Final:
    """The final rates of a verdict and its closed audit, after both were verified."""
    verified = verify_results(verdict)
    raw: Raw = read_raw(verdict)
    stored = verify_audit(audit, verdict)
    results = verified.results
    decisions = decided(stored.queue, stored.closed.blind, stored.votes)
    return Final(
        verified,
        stored,
        compare(results, raw, stored, digest=sha256_file(audit / MANIFEST)),
        tuple(differences(results, raw, stored, decisions)),
    )


def renderings(final: Final) -> dict[str, str]:
    """Every file that follows from verdict and audit, by name."""
    documents = final.results.settings.documents
    values = (final.adjudicated, final.audit, final.differences, documents)
    return {
        RESULTS: final.adjudicated.model_dump_json(indent=2) + "\n",
        DIFFERENCES: "".join(row.model_dump_json() + "\n" for row in final.differences),
        MARKDOWN: render_markdown(*values),
        PAGE: render_html(*values),
    }


def write_final(out: Path, verdict: Path, audit: Path, final: Final) -> None:
    """The directory, whole or not at all."""
    with new_directory(out) as work:
        shutil.copytree(verdict, work / VERDICT)
        shutil.copytree(audit, work / AUDIT)
        for name, text in renderings(final).items():
            with atomic_path(work / name) as partial:
                partial.write_text(text, encoding="utf-8")
        write_manifest(
            work,
            made_by=MADE_BY,
            config=None,
            inputs={VERDICT: final.adjudicated.verdict, AUDIT: final.adjudicated.audit},
        )
