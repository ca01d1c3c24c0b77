"""A study of interactions: sealed after a screen's report, and bound to both.

Paper: Appendix A (interactions are registered only afterwards).
"""

from pathlib import Path

from pdt.config import PdtConfig
from pdt.errors import ContractBroken, UsageError
from pdt.screen.compile import decide_on, seal_screen
from pdt.screen.design import Design, load_design
from pdt.screen.manifest import ANY_CODE, Registered, Screen
from pdt.screen.place import Place
from pdt.screen.report import REPORT, read_screen_report


def register_interactions(screen: Path, design: Path, out: Path) -> Screen:
    """The same baseline, corpora, start, judging and comparison; other variants."""
    place = Place.open(screen)
    before, report = place.screen, read_screen_report(screen / REPORT)
    if report.screen != before.seal or not report.whole:
        raise ContractBroken(
            f"{screen / REPORT} is no sealed report of all runs of this screen.",
            "Make it: pdt screen report.",
        )
    asked = load_design(before.design.preset, design)
    _check(before.design, asked)
    baseline = PdtConfig.model_validate(before.baseline.config)
    asked = asked.model_copy(update={"judged": before.design.judged})
    return seal_screen(
        decide_on(asked, baseline, before.start.model),
        Path(before.records.directory),
        Path(before.held_out.directory),
        out,
        short=before.short,
        any_code=ANY_CODE in before.code.allowed,
        registered=Registered(after_report=report.seal, after_screen=before.seal),
    )


def _check(before: Design, asked: Design) -> None:
    """Interactions of the screen's own axes, at its seeds, compared as it was."""
    if not asked.interactions:
        raise UsageError(
            "The design names no interactions.\nAdd `interactions:`, each with a name and the "
            "levels of two or more axes."
        )
    wrong = [
        name
        for name in ("preset", "seeds", "axes", "compared")
        if getattr(before, name) != getattr(asked, name)
    ]
    if wrong:
        raise UsageError(
            f"The design has other {', '.join(wrong)} than the screen.\n"
            "Interactions are of that screen's factors, at its seeds: copy its design and add "
            "`interactions:` alone."
        )
    single = [one.name for one in asked.interactions if len(one.levels) < 2]
    if single:
        raise UsageError(f"{single[0]} has the level of one axis; an interaction has two or more.")
