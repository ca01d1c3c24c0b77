"""What an answer costs, as a table: one column a way."""

from pdt.evaluation.lines.execution import SIDES
from pdt.evaluation.lines.raw import Raw
from pdt.evaluation.report.results import Results
from pdt.evaluation.report.shown import Table, plain


def execution_table(results: Results, raw: Raw) -> Table:
    """Times are the best of a document's repeats; memory is of a process that wrote one."""
    measures = results.measures
    memory = {} if raw.execution is None else {row.side: row for row in raw.execution.memory}
    rows = []
    for name, title, digits in (
        ("rounds", "forwards, one after another", 1),
        ("seconds", "seconds, the complete answer", 3),
        ("cpu_seconds", "CPU seconds", 3),
        ("plan_seconds", "of these seconds: plan", 4),
        ("prefill_seconds", "of these seconds: prefill", 4),
        ("decode_seconds", "of these seconds: decode", 3),
        ("barrier_seconds", "of these seconds: barriers", 4),
        ("tokens_per_second", "tokens a second", 1),
    ):
        keys = (f"execution.{side.replace(' ', '_')}.{name}" for side in SIDES)
        rows.append([title, *(plain(measures.get(key), digits) for key in keys)])
    for name, title in (
        ("shared", "cache all lanes share, kB"),
        ("private", "lanes' own cache, kB"),
    ):
        found = [
            measures.get(f"execution.{side.replace(' ', '_')}.{name}_cache_bytes") for side in SIDES
        ]
        rows.append([title, *("–" if m is None else f"{m.estimate / 1024:.0f}" for m in found)])
    for field, title in (
        ("loaded_bytes", "memory of an own process, loaded, MB"),
        ("peak_bytes", "memory of an own process, peak, MB"),
    ):
        found_bytes = [getattr(memory[s], field) if s in memory else None for s in SIDES]
        rows.append([title, *("–" if n is None else f"{n / 2**20:.0f}" for n in found_bytes)])
    for key, title in (
        ("speedup_repeats", "serial over packed, seconds: median, least and most of the repeats"),
        ("cpu_ratio", "serial over packed, CPU seconds"),
        ("cpu_ratio_repeats", "the same: median, least and most of the repeats"),
    ):
        rows.append([title, plain(measures.get(f"execution.{key}"), 2), "", ""])
    if raw.execution is not None:
        batched = f"{raw.execution.documents_per_second:.2f}"
        rows.append(["documents a second, batched", batched, "", ""])
    speedup = plain(measures.get("execution.speedup"), 2)
    title = f"Parallel execution; packed is {speedup} times as fast as serial"
    return title, ("cost", *SIDES), rows
