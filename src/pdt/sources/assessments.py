"""What WikiProjects said of a page: classes by project, where they came from, where they disagree.

Paper: §4.1, Table 1.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import AwareDatetime, Field

from pdt.contract import Contract, Line, parse_contract
from pdt.parse import parse_json
from pdt.sources.bundle import SourceBundle
from pdt.sources.data import published
from pdt.terms import SourceOrigin

CLASSES = ("FA", "FL", "A", "GA", "B", "C", "Start", "Stub", "List")
_BY_NAME = {name.lower(): name for name in CLASSES}


class TalkRevision(Contract):
    """The Talk page revision whose banners were read."""

    page_id: int = Field(ge=1)
    """The Talk page."""
    revision_id: int = Field(ge=1)
    """Its revision."""
    revised_at: AwareDatetime
    """When that revision was made."""


class Assessment(Contract):
    """One project's class."""

    project: Line
    """For example `Military history/Maritime warfare task force`."""
    quality: Line
    """For example `FA`; as the project writes it when it is none of the usual."""
    source: Literal["page_assessments", "talk"]
    """The wiki's own table, or the Talk page's banners."""


class Assessments(Contract):
    """Every assessment of one page at acquisition."""

    schema_version: Literal["pdt.assessments/1"] = "pdt.assessments/1"
    """The version of this contract."""
    talk: TalkRevision | None = None
    """Where the banners stood; none when the page has no Talk page."""
    assessments: tuple[Assessment, ...] = ()
    """By project and source, in the order they were read."""

    def history(self, origin: SourceOrigin) -> list[Assessment]:
        """Those of history-oriented projects."""
        return [one for one in self.assessments if is_history_project(one.project, origin)]

    def conflicts(self) -> list[str]:
        """Where projects, or the two sources of one project, disagree."""
        by_class: dict[str, list[str]] = {}
        for one in self.assessments:
            by_class.setdefault(one.quality, []).append(f"{one.project} ({one.source})")
        if len(by_class) < 2:
            return []
        return [f"{quality}: {', '.join(names)}" for quality, names in by_class.items()]


def is_history_project(name: str, origin: SourceOrigin) -> bool:
    lists = published("projects")
    project = name.partition("/")[0].strip().casefold()
    if origin is SourceOrigin.CHRONICLE:
        return project == lists["chronicle"].casefold()
    return project in {known.casefold() for known in lists["projects"]}


def from_page_assessments(table: Mapping[str, Any]) -> list[Assessment]:
    """The `pageassessments` of the action API."""
    found = []
    for project, said in table.items():
        quality = str(said.get("class") or "").strip() if isinstance(said, dict) else ""
        if quality:
            found.append(_assessment(project, quality, "page_assessments"))
    return found


def from_talk(wikitext: str) -> list[Assessment]:
    """The WikiProject banners of a Talk page; a banner without a class takes its shell's."""
    import mwparserfromhell  # of the extra `sources`; reading stored assessments needs none of it

    code = mwparserfromhell.parse(wikitext, skip_style_tags=True)
    found: list[Assessment] = []
    shell = ""
    for template in code.filter_templates(recursive=True):
        name = " ".join(str(template.name).replace("_", " ").split())
        quality = _parameter(template, "class")
        if re.match(
            r"(?i)wikiproject banner ?shell$|banner ?shell|wpbs$|wikiproject ?banners$", name
        ):
            shell = quality or shell
            continue
        match = re.match(r"(?i)(?:wikiproject|wp) ?(?P<project>.+)$", name)
        if match is None or match["project"].lower() in ("1.0", "banner shell"):
            continue
        if quality := quality or shell:
            found.append(_assessment(_project_name(match["project"]), quality, "talk"))
    return list(dict.fromkeys(found))


def read_assessments(directory: Path, bundle: SourceBundle) -> Assessments:
    """The assessments of a bundle; Chronicle's own bundles keep the wiki's plain table."""
    data = (directory / bundle.files["assessments"].name).read_bytes()
    if bundle.origin is SourceOrigin.WIKIMEDIA:
        return parse_contract(Assessments, data, where=f"{directory} assessments")
    return Assessments(assessments=tuple(from_page_assessments(_plain_table(data))))


def _plain_table(data: bytes) -> Mapping[str, Any]:
    try:
        table = parse_json(data).get("pageassessments", {})
    except (ValueError, AttributeError):
        return {}
    return table if isinstance(table, dict) else {}


def _assessment(
    project: str, quality: str, source: Literal["page_assessments", "talk"]
) -> Assessment:
    name = _one_line(project) or "unnamed"
    spelled = _BY_NAME.get(quality.strip().lower(), _one_line(quality)) or "none"
    return Assessment(project=name, quality=spelled, source=source)


def _parameter(template: Any, name: str) -> str:
    for parameter in template.params:
        if str(parameter.name).strip().lower() == name:
            return _one_line(str(parameter.value.strip_code()))
    return ""


_SHORT_NAMES = {"milhist": "Military history", "military history": "Military history"}


def _project_name(name: str) -> str:
    return _SHORT_NAMES.get(name.strip().lower(), name.strip())


def _one_line(text: str) -> str:
    return " ".join(re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]", " ", text).split())[
        :200
    ]
