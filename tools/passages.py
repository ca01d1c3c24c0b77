"""The numbered passages of the paper, and whether our list of them is the paper's.

The list is written down here so that the map can be made without the paper; where its LaTeX source
lies beside the repository, `paper_problems` holds the list against it.
"""

import re

PASSAGES = {
    "§1": "Introduction",
    "§2": "Problem Formulation",
    "§2.1": "Three sections, not three guesses",
    "§2.2": "Block-delayed causal factorization",
    "§3": "Parallel Decoder Transformer",
    "§3.1": "Overview and frozen shared trunk",
    "§3.2": "Continuous set planner",
    "§3.3": "Three physical decoder stacks",
    "§3.4": "Persistent hard-routed Plan-KV",
    "§3.5": "Finite delayed dynamic notes",
    "§3.6": "Synchronized parallel generation",
    "§4": "Source-Grounded Long-Form Supervision",
    "§4.1": "Domain and source ingress",
    "§4.2": "Two-stage teacher construction",
    "§4.3": "Tokenized training record",
    "§5": "Learning Objective",
    "§5.1": "Unordered plan matching",
    "§5.2": "Execution and semantic losses",
    "§5.3": "Combined objective",
    "§6": "Curriculum and Optimization",
    "§7": "Evaluation Protocol and Current Status",
    "§7.1": "Questions, interventions, and gates",
    "§7.2": "Fact ownership and long-form quality",
    "§7.3": "Causal communication measurement",
    "§7.4": "Scale control and status",
    "§8": "Related Work",
    "§9": "Discussion and Limitations",
    "§10": "Conclusion",
    "Appendix A": "Canonical Instantiation and Registered Training Configuration",
    "Eq. 1": "factorization",
    "Eq. 2": "planner",
    "Eq. 3": "node projection",
    "Eq. 4": "Plan-KV read",
    "Eq. 5": "product VQ",
    "Eq. 6": "span",
    "Eq. 7": "plan matching",
    "Eq. 8": "presentation order",
    "Eq. 9": "objective",
    "Eq. 10": "dependency delta",
    "Table 1": "source gates",
    "Table 2": "curriculum",
    "Table 3": "evidence gates",
    "Table 4": "canonical dimensions",
    "Fig. 1": "topology",
    "Fig. 2": "layer anatomy",
    "Fig. 3": "block timeline",
}
"""Everything in the paper that has a number, in reading order."""

LABELS = {
    "eq:factorization": "Eq. 1",
    "eq:span": "Eq. 6",
    "eq:objective": "Eq. 9",
    "tab:sourcegates": "Table 1",
    "tab:curriculum": "Table 2",
    "tab:gates": "Table 3",
    "tab:implementation": "Table 4",
    "fig:architecture": "Fig. 1",
    "fig:layer-anatomy": "Fig. 2",
    "fig:block-timeline": "Fig. 3",
    "app:implementation": "Appendix A",
    "sec:notes": "§3.5",
    "sec:inference": "§3.6",
}
"""The paper's own labels, as its references resolve."""

NOT_YET: dict[str, str] = {}
"""Passages without code, and the issue that brings it; of a section, what of it is missing.

An entry whose equation, table or figure has code fails the test: remove it then. A section may have
code for its other parts.
"""


class UnknownPassage(ValueError):
    """A docstring or marker names a passage that the paper does not have."""


def passages_in(text: str) -> list[str]:
    """The passages a `Paper:` line names; `§3.1 to §3.5` means each of them."""
    found: list[str] = []
    pattern = (
        r"(§\d+(?:\.\d+)?)(?: to (§\d+(?:\.\d+)?))?|((?:Eq|Fig)\. \d+|Table \d+|Appendix [A-Z])"
    )
    for section, last, other in re.findall(pattern, text):
        if other:
            found.append(other)
        elif last:
            order = [p for p in PASSAGES if p.startswith("§")]
            if section not in order or last not in order:
                raise UnknownPassage(f"{section} to {last}")
            found += order[order.index(section) : order.index(last) + 1]
        else:
            found.append(section)
    return found


def numbers_of_paper(tex: str) -> tuple[dict[str, str], dict[str, str]]:
    """The passages of the LaTeX source as it numbers them (with section titles), and its labels."""
    body = re.sub(r"(?<!\\)%.*", "", tex).split(r"\begin{document}", 1)[1]
    token = re.compile(
        r"\\(?P<section>sub)?section\{(?P<title>[^}]*)\}|(?P<appendix>\\appendix)\b"
        r"|\\begin\{(?P<open>equation|align|figure|table)\}"
        r"|\\end\{(?P<close>equation|align|figure|table)\}"
        r"|(?P<nonumber>\\nonumber)|(?P<row>\\\\)|\\label\{(?P<label>[^}]*)\}"
    )
    passages: dict[str, str] = {}
    labels: dict[str, str] = {}
    count = {"section": 0, "sub": 0, "Eq.": 0, "Fig.": 0, "Table": 0}
    inside, numbered, appendix, here = "", True, False, ""

    def number(kind: str) -> str:
        count[kind] += 1
        passages[f"{kind} {count[kind]}"] = ""
        return f"{kind} {count[kind]}"

    for match in token.finditer(body):
        if match["title"] is not None:
            if match["section"]:
                count["sub"] += 1
            else:
                count["section"], count["sub"] = count["section"] + 1, 0
            top = f"Appendix {chr(64 + count['section'])}" if appendix else f"§{count['section']}"
            here = f"{top}.{count['sub']}" if count["sub"] else top
            passages[here] = match["title"]
        elif match["appendix"]:
            appendix, count["section"] = True, 0
        elif match["open"]:
            inside, numbered = match["open"], True
            if inside in ("figure", "table"):
                here = number("Fig." if inside == "figure" else "Table")
        elif match["nonumber"]:
            numbered = False
        elif match["row"] and inside == "align":
            if numbered:
                number("Eq.")
            numbered = True
        elif match["close"]:
            if match["close"] in ("equation", "align") and numbered:
                number("Eq.")
            inside = ""
        elif match["label"]:
            pending = inside in ("equation", "align")
            labels[match["label"]] = f"Eq. {count['Eq.'] + 1}" if pending else here
    return passages, labels


def paper_problems(tex: str) -> list[str]:
    """Where PASSAGES and LABELS are not what the paper says."""
    passages, labels = numbers_of_paper(tex)
    problems = [f"{p} is not in the paper" for p in PASSAGES if p not in passages]
    problems += [f"{p} is in the paper and not in PASSAGES" for p in passages if p not in PASSAGES]
    problems += [
        f"{p} is called {title!r} in the paper"
        for p, title in passages.items()
        if title and PASSAGES.get(p) not in (None, title)
    ]
    problems += [
        f"{label} is {labels.get(label)} in the paper, {ours} here"
        for label, ours in LABELS.items()
        if labels.get(label) != ours
    ]
    return problems
