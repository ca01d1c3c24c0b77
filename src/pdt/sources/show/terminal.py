"""A source in the terminal: the table of source gates, the text with paragraph ids, the works."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pdt.sources.reading import SourceReading
from pdt.sources.source_gates import cited_works
from pdt.sources.verdict import SourceVerdict


def gate_table(verdict: SourceVerdict) -> Table:
    """Every requirement of every row: measured, required, verdict."""
    table = Table("row", "requirement", "measured", "required", "", title_justify="left")
    for row in verdict.source_gates:
        for place, requirement in enumerate(row.requirements):
            table.add_row(
                Text("" if place else row.row.replace("_", " ")),
                Text(requirement.name.replace("_", " ")),
                Text(str(requirement.measured)),
                Text(requirement.required),
                Text("✓", "green") if requirement.passed else Text("✗", "red"),
                end_section=place == len(row.requirements) - 1,
            )
    return table


def render(console: Console, reading: SourceReading, verdict: SourceVerdict) -> None:
    """Print the whole source."""
    bundle, article = reading.bundle, reading.article
    console.print(Text(article.title, "bold"))
    console.print(Text(f"{bundle.project} revision {bundle.revision_id} · {bundle.licence.name}"))
    console.print(Text(f"{bundle.licence.attribution}\n{bundle.bundle_id}", "dim"))
    console.print(gate_table(verdict))
    for section in article.sections:
        if section.path:
            console.print(Text("\n" + " › ".join(section.path), "bold"))
        for paragraph in section.paragraphs:
            line = Text(f"[{paragraph.id}] ", "cyan")
            line.append(paragraph.text, "default")
            if paragraph.citation_ids:
                line.append(f"  {len(paragraph.citation_ids)} citations", "dim")
            console.print(line)
    works = Table("uses", "cited work", "scholarly or institutional because")
    for work in cited_works(reading):
        works.add_row(str(work.occurrences), Text(work.text[:120]), Text(work.reason or "–"))
    console.print(works)
    left_out = ", ".join(f"{n} {why}" for why, n in reading.html.prose.left_out.most_common())
    console.print(Text(f"Left out: {left_out or 'nothing'}", "dim"))
