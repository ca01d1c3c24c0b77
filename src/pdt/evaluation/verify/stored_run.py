"""A result directory as it lies on disk, after every file and what it says of itself was checked.

Paper: §7.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pdt.config import PdtConfig, validate_config
from pdt.contract import parse_contract
from pdt.errors import ConfigError, ContractBroken, CorruptFile, UsageError
from pdt.evaluation.lines.raw import AGAIN, RAW_FILES, Raw, read_raw
from pdt.evaluation.protocol.conditions import Weights
from pdt.evaluation.protocol.scope import Scope, decided_settings, scope_of
from pdt.evaluation.report.results import RESULTS, Results, read_results
from pdt.evaluation.report.write import MADE_BY, MARKDOWN, PAGE, RECORDS, checkpoints, made_from
from pdt.evaluation.screens.calibration import Calibration
from pdt.evaluation.screens.registry import SCREENS
from pdt.provenance import MANIFEST, check_manifest, code_revision, read_json_object

FILES = (*RAW_FILES, RESULTS, MARKDOWN, PAGE)


@dataclass(frozen=True)
class StoredRun:
    """Everything of one evaluation that its directory holds."""

    directory: Path
    results: Results
    raw: Raw
    scope: Scope
    model: PdtConfig
    """Of the bus checkpoint."""
    corpus: PdtConfig
    """Of the records it was judged on."""
    calibration: Calibration | None
    """Of the screen that needs one, where it judged."""

    @property
    def screens(self) -> list[str]:
        """Those that judged: the chosen one, and a calibrated one beside it."""
        kinds = [] if self.calibration is None else [kind for kind in SCREENS if kind.calibrated]
        return sorted({self.results.settings.screen, *(kind.name for kind in kinds)})


def read_stored_run(directory: Path) -> StoredRun:
    """The directory, if its files are whole and its settings are those of its manifest."""
    manifest = check_manifest(directory, FILES)
    where = directory / MANIFEST
    if manifest.get("made_by") != MADE_BY:
        raise ContractBroken(
            f"{directory} was made by {manifest.get('made_by')!r}.",
            "Give a directory of `pdt eval run`.",
        )
    if strangers := {p.name for p in directory.iterdir()} - {*manifest["files"], MANIFEST}:
        raise changed(directory / min(strangers), "is not named by the manifest")
    config, inputs = (_object(manifest, name, where) for name in ("config", "inputs"))
    if not isinstance(inputs.get(RECORDS), str):
        raise CorruptFile(f"{where} names no records.\n{AGAIN}")
    results = read_results(directory)
    if config.get("settings") != results.settings.model_dump(mode="json"):
        raise changed(directory / RESULTS, "settings are not those that the manifest names")
    if checkpoints(inputs) != results.models:
        raise changed(directory / RESULTS, "checkpoints are not those that the manifest names")
    if Weights.BUS not in results.models or not results.models.keys() <= set(Weights):
        raise changed(directory / RESULTS, "checkpoints are not bus, or bus and self_only")
    model = _object(config, "model", where)
    run = StoredRun(
        directory,
        results,
        read_raw(directory),
        _scope(directory, results),
        _config(model, where),
        _config(_object(config, RECORDS, where) if RECORDS in config else model, where),
        _calibration(config, where),
    )
    _check_settings(run)
    if made_from(config, inputs) != results.made_from:
        raise changed(where, "config or inputs are not those that results.json was made from")
    return run


def changed(path: Path, what: str) -> ContractBroken:
    """A file that no run wrote like this."""
    made = read_json_object(path.parent / MANIFEST).get("code_revision")
    now = code_revision()
    other = f" Or pdt was: {made} made it, {now} reads it; verify it with the former."
    return ContractBroken(
        f"{path}: {what}.",
        "The directory was changed after it was written. Run the evaluation again."
        + (other if made != now else ""),
    )


def _object(tree: dict[str, Any], name: str, where: Path) -> dict[str, Any]:
    value = tree.get(name)
    if not isinstance(value, dict):
        raise CorruptFile(f"{where} names no {name}.\n{AGAIN}")
    return value


def _scope(directory: Path, results: Results) -> Scope:
    try:
        return scope_of(results.settings, results.models)
    except UsageError as error:
        what = f"names conditions that its checkpoints cannot run: {error}"
        raise changed(directory / RESULTS, what) from error


def _config(tree: dict[str, Any], where: Path) -> PdtConfig:
    try:
        return validate_config(tree, where="its config")
    except ConfigError as error:
        raise changed(where, str(error)) from error


def _calibration(config: dict[str, Any], where: Path) -> Calibration | None:
    if config.get("calibration") is None:
        return None
    tree = _object(config, "calibration", where)
    return parse_contract(Calibration, tree, where=f"{where}, calibration", remedy=AGAIN)


def _check_settings(run: StoredRun) -> None:
    """What corpus and checkpoint decide is as their configs say; a screen has its calibration."""
    settings = run.results.settings
    for name, decided in decided_settings(run.corpus, run.model).items():
        if getattr(settings, name) != decided:
            raise changed(
                run.directory / RESULTS, f"{name} is not {decided}, as the stored config says"
            )
    kinds = {kind.name: kind for kind in SCREENS}
    if settings.screen not in kinds:
        raise changed(run.directory / RESULTS, f"there is no screen {settings.screen!r}")
    if kinds[settings.screen].calibrated and run.calibration is None:
        what = f"the screen {settings.screen} judged without a calibration"
        raise changed(run.directory / MANIFEST, what)
