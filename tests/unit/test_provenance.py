"""What a result is bound to."""

from pathlib import Path

import pytest

from pdt import provenance


def test_the_code_that_runs_is_python_and_c(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provenance, "__file__", str(tmp_path / "provenance.py"))
    seen = {provenance.code_digest()}
    for name in ("a.py", "b.c"):
        (tmp_path / name).write_text("1")
        seen.add(provenance.code_digest())
    (tmp_path / "b.c").write_text("2")
    (tmp_path / "notes.txt").write_text("1")
    seen.add(provenance.code_digest())
    assert len(seen) == 4
