"""The nano study in its quick form: from the models in the box through every stage to a verdict."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

QUICK = [sys.executable, "-m", "pdt", "study", "nano", "--quick", "--out", "study", "--json"]


@pytest.mark.slow
@pytest.mark.paper("Table 3")
def test_every_effect_goes_the_way_the_paper_says(tmp_path: Path) -> None:
    done = subprocess.run(QUICK, cwd=tmp_path, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["documents"] == 16 and len(summary["directions"]) == 9
    verdict = tmp_path / "study" / "seed-0" / "verdict"
    verified = [sys.executable, "-m", "pdt", "verify", str(verdict)]
    assert subprocess.run(verified, capture_output=True, timeout=300).returncode == 0
    again = subprocess.run(QUICK, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert again.returncode == 0 and json.loads(again.stdout) == summary
