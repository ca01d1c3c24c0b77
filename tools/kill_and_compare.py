"""Build a corpus twice, once killed at random, and compare every byte.

    python tools/kill_and_compare.py runs/chronicle --out runs/kill --kills 3 --workers 2

Kills are SIGKILL to the command after a random share of the undisturbed run's time.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path


def tree(root: Path) -> dict[str, bytes]:
    """Every file of a corpus by name; the calls aside, whose ledger holds times."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.relative_to(root).parts[0] != "calls"
    }


def parts_done(out: Path) -> int:
    return sum(1 for name in ("sources", "taught", "records") for _ in out.glob(f"{name}/*.json"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sources", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1729)
    parser.add_argument("--set", action="append", default=[])
    given = parser.parse_args()
    settings = [part for text in given.set for part in ("--set", text)]
    command = [sys.executable, "-m", "pdt", "corpus", "build", str(given.sources), *settings]
    command += ["--workers", str(given.workers), "--out"]
    given.out.mkdir(parents=True)
    whole, killed = given.out / "undisturbed", given.out / "killed"
    start = time.monotonic()
    subprocess.run([*command, str(whole)], check=True, stdout=subprocess.DEVNULL)
    undisturbed = time.monotonic() - start
    dice, kills = random.Random(given.seed), list[dict[str, object]]()
    while len(kills) < given.kills:
        resume = ["--resume"] if killed.exists() else []
        process = subprocess.Popen([*command, str(killed), *resume], stdout=subprocess.DEVNULL)
        wait = dice.uniform(0.15, 0.9) * undisturbed / given.kills
        try:
            process.wait(wait)
            break  # it was faster than the kill
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        kills.append({"seconds": round(wait, 1), "parts_done": parts_done(killed)})
        sys.stderr.write(f"killed after {wait:.1f} s, {parts_done(killed)} parts done\n")
    subprocess.run([*command, str(killed), "--resume"], check=True, stdout=subprocess.DEVNULL)
    one, two = tree(whole), tree(killed)
    different = sorted(name for name in one.keys() | two.keys() if one.get(name) != two.get(name))
    result = {
        "report": json.loads((whole / "report.json").read_text()),
        "undisturbed_seconds": round(undisturbed, 1),
        "kills": kills,
        "files": len(one),
        "bytes": sum(map(len, one.values())),
        "different": different,
    }
    sys.stdout.write(json.dumps(result, indent=2) + "\n")
    return 1 if different or len(kills) < given.kills else 0


if __name__ == "__main__":
    sys.exit(main())
