"""Run cases and tell what may not happen: another exception, or more than ten seconds."""

import argparse
import json
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pdt.errors import PdtError
from tools.fuzz.targets import TARGETS

MOST_SECONDS = 10.0


def run(name: str, numbers: range, *, seed: int = 1729) -> dict[str, Any]:
    """Every case of one target; the tally, and every failure with its number."""
    tally: Counter[str] = Counter()
    failures: list[str] = []
    slowest = 0.0
    with tempfile.TemporaryDirectory() as place:
        target = TARGETS[name](Path(place))
        for number in numbers:
            case = target.case(random.Random(f"{seed}:{name}:{number}"))
            started = time.process_time()
            try:
                case()
            except PdtError as error:
                tally[type(error).__name__] += 1
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # a panic in Rust is no Exception
                where = traceback.extract_tb(error.__traceback__)[-1]
                spot = f"{where.filename.rpartition('pdt/')[2]}:{where.lineno}"
                failures.append(f"{number}: {type(error).__name__} at {spot}: {str(error)[:200]}")
            else:
                tally["accepted"] += 1
            taken = time.process_time() - started
            slowest = max(slowest, taken)
            if taken > MOST_SECONDS:
                failures.append(f"{number}: {taken:.1f} s")
    return {
        "target": name,
        "cases": len(numbers),
        "tally": dict(sorted(tally.items())),
        "slowest_seconds": round(slowest, 3),
        "failures": failures,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", action="append", choices=TARGETS, help="default: all of them")
    parser.add_argument("--count", type=int, default=200, help="cases a target")
    parser.add_argument("--start", type=int, default=0, help="the number of the first case")
    parser.add_argument("--seed", type=int, default=1729)
    chosen = parser.parse_args(arguments)
    failed = False
    for name in chosen.target or TARGETS:
        numbers = range(chosen.start, chosen.start + chosen.count)
        result = run(name, numbers, seed=chosen.seed)
        sys.stdout.write(json.dumps(result, indent=2, ensure_ascii=False) + "\n")
        sys.stdout.flush()
        failed |= bool(result["failures"])
    return 1 if failed else 0
