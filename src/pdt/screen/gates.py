"""What a run must show before it trains: an inspected pilot, and the audit of a failed executor.

What was shown, or why it was waived, stands in the run's manifest.

Paper: §4.3, §7.4.
"""

from pathlib import Path
from typing import Any

from pdt.config import PdtConfig
from pdt.errors import ContractBroken, UsageError
from pdt.records.pilot import read_pilot


def pilot_gate(config: PdtConfig, pilot: Path | None, waived: str | None) -> dict[str, Any]:
    """Refuse training that asks for a pilot and has none, or one that is too small."""
    asked = config.records.pilot
    if pilot is not None and waived is not None:
        raise UsageError("--pilot and --pilot-waived are given. A pilot is there or it is not.")
    if waived is not None:
        return {"pilot": {"waived": _reason("--pilot-waived", waived)}}
    if pilot is None:
        if not asked.required:
            return {}
        raise UsageError(
            f"This training asks for a sealed pilot of {asked.records} records over "
            f"{asked.categories} categories, each inspected by a person (§4.3).\n"
            "Inspect and seal one (`pdt record review`, `pdt record seal`) and give --pilot DIR, "
            "or say why there is none: --pilot-waived REASON."
        )
    found = read_pilot(pilot)
    if len(found.records) < asked.records or len(found.categories) < asked.categories:
        raise ContractBroken(
            f"{pilot} has {len(found.records)} records in {len(found.categories)} categories; "
            f"required: {asked.records} in {asked.categories} (§4.3).",
            "Inspect more, or say why it is enough: --pilot-waived REASON.",
        )
    return {"pilot": {"seal": found.seal, "records": len(found.records)}}


def scale_gate(config: PdtConfig, audit: Path | None, override: str | None) -> dict[str, Any]:
    """Refuse a larger rung without the audit of a smaller one that failed. Paper: §7.4."""
    if audit is not None and override is not None:
        raise UsageError("--scale-audit and --scale-override are given. Give one of them.")
    if override is not None:
        return {"scale": {"override": _reason("--scale-override", override)}}
    if audit is None:
        if not config.training.larger_rung:
            return {}
        raise UsageError(
            "This trunk is the larger rung of §7.4: it is asked for when an executor on the "
            "smaller one has failed, and everything else was looked at.\n"
            "Give its record (`pdt scale audit`) as --scale-audit FILE, or say why there is none: "
            "--scale-override REASON."
        )
    from pdt.screen.scale import read_audit  # with the whole evaluation behind it

    found = read_audit(audit)
    failed = [check.name for check in found.checks if not check.passed]
    if failed:
        raise ContractBroken(
            f"{audit}: {', '.join(failed)} did not pass.",
            "Mend that first: a larger trunk would not say what failed (§7.4).",
        )
    trunk = config.trunk
    if (found.trunk["layers"], found.trunk["width"]) == (trunk.shape.layers, trunk.shape.width):
        raise ContractBroken(
            f"{audit} is of an executor on a trunk of this very size.",
            "Give the audit of the smaller rung.",
        )
    return {"scale": {"audit": found.seal, "verdict": found.verdict}}


def _reason(flag: str, text: str) -> str:
    if not text.strip():
        raise UsageError(f"{flag} needs a reason in words.")
    return text.strip()
