"""What the harder gates rest on: plans node by node, the channel, references."""

from pdt.evaluation.protocol.conditions import ZERO_FROM
from pdt.evaluation.report.results import Results
from pdt.evaluation.report.shown import Table, percent, plain, with_n


def node_table(results: Results) -> Table:
    """What the harder gates on plans rest on, beside the gates themselves."""
    names = (
        ("transplant.new", "node transplanted: the new fact"),
        ("transplant.old", "node transplanted: the old fact"),
        ("transplant.rest", "node transplanted: the lane's other facts"),
        ("dropped.old", "node dropped: its fact"),
        ("dropped.rest", "node dropped: the lane's other facts"),
        *(
            (f"persistence.from_{block}.{key}", f"from block {block} on: {words}")
            for block in ZERO_FROM
            for key, words in (
                ("recall", "facts not begun, plan kept"),
                ("zeroed", "facts not begun, plan zeroed"),
                ("cost_told", "cost where the request tells the division"),
                ("cost_dealt", "cost where only the plan knows it"),
            )
        ),
        ("opening.plans", "after a sibling's first sentence: the plan's facts"),
        ("range.few_facts_recall", "recall, 6 facts or fewer"),
        ("range.many_facts_recall", "recall, 14 facts or more"),
    )
    rows = [
        [title, with_n(percent(measure), measure)]
        for name, title in names
        if (measure := results.measures.get(name)) is not None
    ]
    if (bits := results.measures.get("planner.role_bits")) is not None:
        title = "bits that a lane's number tells of its part (at most log2 of the lanes)"
        rows.append([title, with_n(plain(bits), bits)])
    return "Plans, node by node", ("measure", "measured"), rows


def channel_table(results: Results) -> Table:
    prefix = "channel."
    rows = [
        [name.removeprefix(prefix).removesuffix(".share").replace("_", " "), with_n(percent(m), m)]
        for name, m in results.measures.items()
        if name.startswith(prefix)
    ]
    title = "Share of h delivered, words of 6 bits or more: by lag in blocks, by place in the block"
    return title, ("words", "share of h"), rows


def reference_table(results: Results) -> Table:
    measures = results.measures
    found = (
        ("references made by their receiver", percent, "references.recall"),
        ("of those that both lanes write, in time", percent, "references.in_time"),
        ("Δ on their tokens without notes, nats a token", plain, "references.delta"),
        ("all dependencies, both lanes in agreement", percent, "agreement.all"),
    )
    rows = [
        [title, with_n(shown(measures[name]), measures[name])]
        for title, shown, name in found
        if name in measures
    ]
    return "Ordinary references, and all dependencies", ("measure", "measured"), rows
