"""The `pdt` command in this process: what a user sees of it, without loading torch once a call."""

import contextlib
import io
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import pdt.cli


def run_here(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """As `subprocess.run` of the command in `cwd`, with its exit code and both its outputs."""
    out, err = io.StringIO(), io.StringIO()
    words = ["pdt", *map(str, arguments)]
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(),
    ):
        patch.setattr(sys, "argv", words)
        patch.setenv("COLUMNS", "80")
        if cwd is not None:
            patch.chdir(cwd)
        try:
            pdt.cli.main()
        except SystemExit as end:
            code = 0 if end.code is None else int(end.code)
            return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())
    raise AssertionError("a command always exits")
