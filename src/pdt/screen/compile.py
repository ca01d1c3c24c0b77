"""Compile a screen: every configuration, what it costs, what it is bound to; then the seal.

Paper: Appendix A, §5.3.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pdt.config import PdtConfig, edit_config, load_config
from pdt.errors import UsageError
from pdt.evaluation.protocol.conditions import chosen_conditions
from pdt.evaluation.protocol.evidence_gates import registered_questions
from pdt.model.census import take_census
from pdt.model.names import model_directory
from pdt.provenance import (
    MANIFEST,
    code_digest,
    code_revision,
    new_directory,
    sha256_file,
    sha256_json,
    write_json,
)
from pdt.records.batch import RecordShards
from pdt.records.fit import check_fit
from pdt.screen.cost import predict_cost
from pdt.screen.design import Design, Judged, load_design
from pdt.screen.manifest import (
    ANY_CODE,
    SCREEN,
    Registered,
    Screen,
    SealedCode,
    SealedCorpus,
    SealedRun,
    SealedStart,
    SealedVariant,
    seal_of,
)
from pdt.screen.start import drawn_anew
from pdt.screen.variants import Variant, seeded, variants_of
from pdt.terms import Split
from pdt.training.preflight import check_stages

Telling = Callable[[str], None]


@dataclass(frozen=True)
class Asked:
    """A screen in words."""

    preset: str
    file: Path | None = None
    """A configuration over the preset."""
    overrides: tuple[str, ...] = ()
    design: Path | None = None
    short: bool = False
    start: str | None = None
    any_code: bool = False


@dataclass(frozen=True)
class Decided:
    """A design with its configurations, before it is bound to any data."""

    design: Design
    judged: Judged
    start: str | None
    variants: tuple[SealedVariant, ...]

    def configs(self) -> list[PdtConfig]:
        return [PdtConfig.model_validate(variant.config) for variant in self.variants]


def decide(asked: Asked, telling: Telling = lambda text: None) -> Decided:
    """Every variant with its census and cost; needs no data."""
    design = load_design(asked.preset, asked.design)
    if design.preset != asked.preset:
        raise UsageError(
            f"{asked.design} is a design for the preset {design.preset}; --preset is "
            f"{asked.preset}."
        )
    baseline = load_config(asked.preset, file=asked.file)
    judged, start = design.judged, asked.start
    if asked.short:
        if design.short is None:
            raise UsageError(
                f"The design for {design.preset} has no short form.\n"
                "Leave out --short, or give a --design with `short:`."
            )
        baseline = edit_config(baseline, design.short.settings, where="the short form")
        judged, start = design.short.judged or judged, start or design.short.start
    baseline = edit_config(baseline, asked.overrides, where="--set")
    return decide_on(design.model_copy(update={"judged": judged}), baseline, start, telling)


def decide_on(
    design: Design, baseline: PdtConfig, start: str | None, telling: Telling = lambda text: None
) -> Decided:
    """Every variant of a design on a baseline."""
    if design.compared.headline not in measured():
        raise UsageError(
            f"compared.headline is {design.compared.headline!r}, which no evidence gate reads.\n"
            "Name a measure of evidence_gates.yaml, such as oracle.owner_recall."
        )
    variants = []
    for variant in variants_of(design, baseline):
        telling(variant.name)
        check_stages(variant.config)
        variants.append(_sealed(variant, baseline, design.judged))
    return Decided(design, design.judged, start, tuple(variants))


def compile_screen(
    asked: Asked,
    records: Path,
    held_out: Path,
    out: Path,
    *,
    telling: Telling = lambda text: None,
) -> Screen:
    """Write the sealed manifest of a screen to a new directory."""
    found = decide(asked, telling)
    if found.design.interactions:
        raise UsageError(
            "This design has interactions: they are registered after a screen's report is sealed.\n"
            "Give both to `pdt screen register`."
        )
    return seal_screen(found, records, held_out, out, short=asked.short, any_code=asked.any_code)


def seal_screen(
    decided: Decided,
    records: Path,
    held_out: Path,
    out: Path,
    *,
    short: bool,
    any_code: bool,
    registered: Registered | None = None,
) -> Screen:
    """Bind what was decided to its data and its code, and write it."""
    train, judged = RecordShards(records, split=Split.TRAIN), RecordShards(held_out)
    judged = judged.of_split(decided.judged.split)
    _check_corpora(decided, train, judged)
    directory = None if decided.start is None else model_directory(decided.start)
    if directory is not None and not (directory / MANIFEST).is_file():
        raise UsageError(f"{decided.start} is no saved model; --start takes one.")
    configs = decided.configs()
    screen = Screen(
        kind="interactions" if decided.design.interactions else "one-factor",
        registered=registered,
        compiled_at=datetime.now(UTC).replace(microsecond=0),
        short=short,
        design=decided.design,
        records=_corpus(train),
        held_out=_corpus(judged),
        start=SealedStart(
            model=None if directory is None else str(directory.resolve()),
            manifest_sha256=None if directory is None else sha256_file(directory / MANIFEST),
            anew=() if directory is None else drawn_anew(directory, configs),
        ),
        code=SealedCode(
            revision=code_revision(),
            digest=code_digest(),
            allowed=(ANY_CODE,) if any_code else (),
        ),
        measured=measured(),
        comparisons=len(decided.variants) - 1,
        comparison=_words(decided),
        variants=decided.variants,
        runs=_runs(decided, configs),
        seal="0" * 64,
    )
    screen = screen.model_copy(update={"seal": seal_of(screen.model_dump(mode="json"))})
    with new_directory(out) as work:
        write_json(work / SCREEN, screen.model_dump(mode="json"))
    return screen


def measured() -> tuple[str, ...]:
    """The measures that evidence gates read, in their order, each once. Paper: Table 3."""
    gates = (gate for row in registered_questions() for gate in row.gates)
    return tuple(dict.fromkeys(gate.measure for gate in gates))


def _sealed(variant: Variant, baseline: PdtConfig, judged: Judged) -> SealedVariant:
    census = take_census(variant.config)
    conditions = chosen_conditions(judged.conditions, with_self_only=False, with_learned=True)
    return SealedVariant(
        name=variant.name,
        axis=variant.axis,
        level=variant.level,
        config=variant.config.model_dump(mode="json"),
        difference=variant.difference(baseline),
        census={
            "shared": census.shared_total,
            "physical": census.physical_total,
            "coordination": census.coordination_total,
            "total": census.total,
        },
        cost=predict_cost(
            variant.config,
            census,
            judged_documents=judged.documents,
            conditions=len(conditions),
            batch=judged.batch,
        ),
    )


def _runs(decided: Decided, configs: Sequence[PdtConfig]) -> tuple[SealedRun, ...]:
    """Seed by seed, so that a screen that is stopped early has whole seeds."""
    return tuple(
        SealedRun(
            run=f"{variant.name}.{seed}",
            variant=variant.name,
            seed=seed,
            config_sha256=sha256_json(seeded(config, seed).model_dump(mode="json")),
        )
        for seed in decided.design.seeds
        for variant, config in zip(decided.variants, configs, strict=True)
    )


def _check_corpora(decided: Decided, train: RecordShards, judged: RecordShards) -> None:
    """Records that every variant can read, and held-out documents enough."""
    if not len(train):
        raise UsageError(f"{train.directory} holds no documents of the split train.")
    pilot = decided.configs()[0].records.pilot
    if pilot.required and len(train) < pilot.architecture_records:
        raise UsageError(
            f"{train.directory} holds {len(train):,} documents of the split train; an architecture "
            f"screen asks for {pilot.architecture_records:,} (§4.3).\n"
            "Build a larger corpus, or seal the exception: --set records.pilot.required=false."
        )
    if len(judged) < decided.judged.documents:
        raise UsageError(
            f"{judged.directory} holds {len(judged)} documents of the split {judged.split}; the "
            f"design judges on {decided.judged.documents}.\nGive --held-out another corpus."
        )
    for config in decided.configs():
        if config.trunk.source is None or config.trunk.shape == decided.configs()[0].trunk.shape:
            check_fit(train, config, None)


def _corpus(shards: RecordShards) -> SealedCorpus:
    directory = str(shards.directory.resolve())
    return SealedCorpus(directory=directory, digest=shards.digest, documents=len(shards))


def _words(decided: Decided) -> str:
    compared, count = decided.design.compared, len(decided.variants) - 1
    return (
        f"Each variant against the baseline, paired over documents and seeds: "
        f"{compared.resamples} resamples of documents and of seeds, {compared.confidence:.0%} "
        f"intervals, p-values by {compared.correction.capitalize()} over {count} comparisons"
    )
