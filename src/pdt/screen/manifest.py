"""screen.json: the sealed manifest of a screen, and every refusal of one that is not whole.

The seal is a digest of everything else in the file. A run is bound to the seal and to its entry.

Paper: Appendix A (compiled before training).
"""

from pathlib import Path
from typing import Any, Literal

from pydantic import AwareDatetime

from pdt.config import PdtConfig, validate_config
from pdt.contract import Contract, Id, Line, Sha256, parse_contract
from pdt.errors import ContractBroken, UsageError
from pdt.parse import NotParsed, parse_json
from pdt.provenance import sha256_json
from pdt.screen.cost import Cost
from pdt.screen.design import Design
from pdt.screen.variants import BASELINE, seeded

SCREEN = "screen.json"
ANY_CODE = "any"


class SealedVariant(Contract):
    """One configuration, whole, and what it costs."""

    name: Id
    axis: Line | None
    """None for the baseline."""
    level: Line
    config: dict[str, Any]
    """The whole configuration; a run of it has its seed as `training.seed`."""
    difference: dict[str, tuple[Any, Any]]
    """Every key that differs from the baseline, with both values."""
    census: dict[str, int]
    """Parameters: shared, physical, coordination, total."""
    cost: Cost
    """Predicted."""


class SealedRun(Contract):
    """One run: a variant at a seed."""

    run: Id
    variant: Id
    seed: int
    config_sha256: Sha256
    """Of the run's own configuration."""


class SealedCorpus(Contract):
    """Records by their digest; where they lie may change."""

    directory: Line
    digest: Sha256
    documents: int


class SealedStart(Contract):
    """What every run starts from."""

    model: Line | None
    """A trained model; None for the preset's own trunk, or random weights where it has none."""
    manifest_sha256: Sha256 | None
    anew: tuple[Line, ...] = ()
    """Components that every run draws anew, for some variant has no place for the model's own."""


class SealedCode(Contract):
    """The code that a run must be made with."""

    revision: Line
    digest: Sha256
    allowed: tuple[Line, ...] = ()
    """Other digests that may run it; `any` allows every one."""


class Registered(Contract):
    """Of an interaction study: the report it was registered after."""

    after_report: Sha256
    """The seal of that report."""
    after_screen: Sha256
    """The seal of the screen that it reports."""


class Screen(Contract):
    """screen.json."""

    schema_version: Literal["pdt.screen/1"] = "pdt.screen/1"
    kind: Literal["one-factor", "interactions"] = "one-factor"
    registered: Registered | None = None
    compiled_at: AwareDatetime
    short: bool
    design: Design
    records: SealedCorpus
    held_out: SealedCorpus
    """What every run is judged on."""
    start: SealedStart
    code: SealedCode
    measured: tuple[Line, ...]
    """The measures of every evidence gate, in their order."""
    comparisons: int
    """Variants but the baseline: what every measure is corrected for."""
    comparison: Line
    """How variants are compared, in words."""
    variants: tuple[SealedVariant, ...]
    runs: tuple[SealedRun, ...]
    seal: Sha256

    def variant(self, name: str) -> SealedVariant:
        return next(variant for variant in self.variants if variant.name == name)

    @property
    def baseline(self) -> SealedVariant:
        return self.variant(BASELINE)

    def entry(self, run: str) -> SealedRun:
        for entry in self.runs:
            if entry.run == run:
                return entry
        raise UsageError(
            f"The screen has no run {run!r}.\nRuns are a variant and a seed, such as "
            f"{self.runs[0].run}; `pdt screen status` lists them."
        )

    def config_of(self, entry: SealedRun) -> PdtConfig:
        """The run's configuration; it must have the digest that its entry names."""
        config = validate_config(self.variant(entry.variant).config, where=entry.variant)
        config = seeded(config, entry.seed)
        if sha256_json(config.model_dump(mode="json")) != entry.config_sha256:
            raise ContractBroken(
                f"The configuration of {entry.run} is not the one that was sealed.",
                "This pdt reads it with other defaults: use the revision that compiled the screen "
                f"({self.code.revision}), or compile it again.",
            )
        return config


def seal_of(tree: dict[str, Any]) -> str:
    """Of everything in the file but the seal."""
    return sha256_json({key: value for key, value in tree.items() if key != "seal"})


def read_screen(directory: Path) -> Screen:
    """The screen of a directory, or why it is none."""
    path = directory / SCREEN if directory.is_dir() else directory
    try:
        tree = parse_json(path.read_bytes())
    except FileNotFoundError as error:
        raise UsageError(
            f"{directory} holds no {SCREEN}.\nCompile one: pdt screen compile RECORDS --out DIR."
        ) from error
    except (OSError, NotParsed) as error:
        raise ContractBroken(f"{path} cannot be read: {error}.", REMEDY) from error
    if not isinstance(tree, dict) or not tree.get("seal"):
        raise ContractBroken(f"{path} is not sealed.", REMEDY)
    if seal_of(tree) != tree["seal"]:
        raise ContractBroken(f"{path} was changed after it was sealed.", REMEDY)
    return parse_contract(Screen, tree, where=str(path), remedy=REMEDY)


REMEDY = (
    "A screen is decided before it trains: take the file as `pdt screen compile` wrote it, or "
    "compile another screen to a new directory."
)
