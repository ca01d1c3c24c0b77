"""The teacher that a configuration names, with what it needs beside the sources.

Paper: §4.2.
"""

from functools import cache
from pathlib import Path

from pydantic import ValidationError

from pdt.chronicle.bundles import IDS, LISTS
from pdt.chronicle.dials import Dials
from pdt.chronicle.meter import Meter
from pdt.chronicle.teacher import ChronicleTeacher
from pdt.config import PdtConfig
from pdt.errors import CorruptFile, UsageError
from pdt.extractive.teacher import ExtractiveTeacher
from pdt.provenance import MANIFEST, read_json_object
from pdt.records.checks import check_document
from pdt.records.pipeline.layout import Build
from pdt.sources.verdict import AcceptedSource
from pdt.teacher.budget import LEDGER, Budget
from pdt.teacher.call import Client
from pdt.teacher.endpoint import Endpoint, check_settings
from pdt.teacher.interface import Teacher
from pdt.teacher.journal import Journal, Replay
from pdt.teacher.prompted import Check, PromptedTeacher
from pdt.terms import TeacherKind
from pdt.tokenizer import load_tokenizer


def open_teacher(build: Build) -> Teacher:
    """Ready to teach; a key is read from the environment here, by each process for itself."""
    config = build.config
    if config.teacher.kind is TeacherKind.CHRONICLE:
        return _chronicle(build.bundles.parent, config)
    if config.teacher.kind is TeacherKind.EXTRACTIVE:
        return extractive(config)
    return prompted(config, open_client(build))


def extractive(config: PdtConfig) -> ExtractiveTeacher:
    return ExtractiveTeacher(config, load_tokenizer(config.records.tokenizer), checker(config))


def prompted(config: PdtConfig, client: Client) -> PromptedTeacher:
    return PromptedTeacher(client, config, checker(config))


def checker(config: PdtConfig) -> Check:
    """Every rule of the contract, on text and on the student's tokens."""
    tokenizer = load_tokenizer(config.records.tokenizer)
    return lambda document: check_document(document, config, tokenizer)


def open_client(build: Build) -> Client:
    journal = Journal(build.calls_at)
    if build.config.teacher.kind is TeacherKind.REPLAY:
        return Replay(journal)
    return Endpoint(build.config.teacher, journal, open_budget(build))


def open_budget(build: Build) -> Budget:
    """The budget of the directory of calls; replies that were never booked are booked first."""
    check_settings(build.config.teacher)
    journal = Journal(build.calls_at)
    budget = Budget(build.calls_at / LEDGER, build.config.teacher.budget or 0.0)
    budget.recover(journal.cost)
    return budget


def record_id_of(build: Build, accepted: AcceptedSource) -> str:
    """The record's id: page and revision, or what Chronicle calls it."""
    if build.config.teacher.kind is not TeacherKind.CHRONICLE:
        return accepted.candidate.key.replace("/", "-")
    path = build.bundles.parent / LISTS / IDS
    ids = _chronicle_ids(path)
    found = ids.get(accepted.article.bundle_id)
    if found is None:
        raise UsageError(
            f"{path} does not name {accepted.article.title!r}.\n"
            "Chronicle teaches what it wrote; set teacher.kind for other sources."
        )
    return found


def _chronicle(directory: Path, config: PdtConfig) -> ChronicleTeacher:
    manifest = read_json_object(directory / MANIFEST)
    if manifest.get("made_by") != "pdt chronicle write":
        raise UsageError(
            f"{directory} was not made by `pdt chronicle write --bundles`.\n"
            "Chronicle teaches its own bundles; set teacher.kind for other sources."
        )
    try:
        dials = Dials.model_validate(manifest["config"]["dials"])
    except (KeyError, TypeError, ValidationError) as error:
        raise CorruptFile(
            f"{directory / MANIFEST} holds no dials of Chronicle.\nWrite the bundles again."
        ) from error
    return ChronicleTeacher(dials, Meter(load_tokenizer(config.records.tokenizer)))


@cache
def _chronicle_ids(path: Path) -> dict[str, str]:
    return read_json_object(path)
