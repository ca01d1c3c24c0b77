"""How fast articles are read and judged, against a plain lxml walk of the same files.

The walk parses a page and visits every node's text: what any reader must pay at least. Memory is
the growth of a fresh process that reads the largest page.
"""

import multiprocessing
import resource
from dataclasses import dataclass
from pathlib import Path

from pdt.bench.timing import Timing, interleave
from pdt.config import PdtConfig
from pdt.errors import UsageError
from pdt.sources.reading import bundle_directories, read_source
from pdt.sources.source_gates import judge_source
from pdt.tokenizer import load_tokenizer


@dataclass(frozen=True)
class SourcesResult:
    """Seconds for all articles, by side."""

    articles: int
    bytes: int
    cleaned: Timing
    """Bundle digests checked, page read, article made, citations folded."""
    judged: Timing
    """The same, and every source gate."""
    walked: Timing
    """lxml: parse, visit every node."""
    largest_bytes: int
    largest_growth: int
    """Bytes that a fresh process grew by while it read the largest page."""


def bench_sources(root: Path, config: PdtConfig, *, repeats: int) -> SourcesResult:
    """Measure all bundles under `root`."""
    directories = list(bundle_directories(root))
    if not directories:
        raise UsageError(
            f"{root} holds no bundle.\nGive the bundles that `pdt source fetch` wrote."
        )
    limits, tokenizer = config.sources.html, load_tokenizer(config.records.tokenizer)
    pages = [directory / "parsoid.html" for directory in directories]

    def clean() -> None:
        for directory in directories:
            read_source(directory, limits)

    def judge_all() -> None:
        for directory in directories:
            judge_source(read_source(directory, limits), None, None, config, tokenizer)

    timings = interleave(
        {"clean": clean, "judge": judge_all, "walk": lambda: [walk(page) for page in pages]},
        repeats=repeats,
        warmup=1,
    )
    largest = max(directories, key=lambda directory: (directory / "parsoid.html").stat().st_size)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        growth = pool.apply(memory_growth, (largest, config))
    return SourcesResult(
        articles=len(directories),
        bytes=sum(page.stat().st_size for page in pages),
        cleaned=timings["clean"],
        judged=timings["judge"],
        walked=timings["walk"],
        largest_bytes=(largest / "parsoid.html").stat().st_size,
        largest_growth=growth,
    )


def walk(page: Path) -> int:
    """Parse with lxml and visit every node; the characters seen."""
    try:
        import lxml.html
    except ImportError as error:
        raise UsageError("lxml is not installed.\nInstall it: pip install lxml.") from error
    tree = lxml.html.fromstring(page.read_bytes())
    return sum(len(node.text or "") + len(node.tail or "") for node in tree.iter())


def memory_growth(directory: Path, config: PdtConfig) -> int:
    """Memory that one reading holds, tree and text, above what the process held before."""
    before = _resident()
    reading = read_source(directory, config.sources.html)
    grown = _resident() - before
    del reading
    return grown


def _resident() -> int:
    """Bytes of this process in memory; 0 where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return 0
    return pages * resource.getpagesize()
