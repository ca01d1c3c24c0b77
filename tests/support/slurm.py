"""Slurm's commands as programs of ours: real scripts and tasks, done at once and in order."""

import os
import stat
import sys
from pathlib import Path

import pytest

SBATCH = """#!/usr/bin/env python3
import os, re, subprocess, sys
script = open(sys.argv[-1]).read()
last = int(re.search(r"--array=0-(\\d+)", script).group(1))
for argument in sys.argv[1:]:
    for name, value in re.findall(r"(RUN_OFFSET)=(\\d+)", argument):
        os.environ[name] = value
for task in range(last + 1):
    env = {**os.environ, "SLURM_ARRAY_TASK_ID": str(task), "SLURM_JOB_ID": "7",
           "SLURM_NODELIST": "here"}
    done = subprocess.run(["bash", sys.argv[-1]], env=env, capture_output=True, text=True)
    if done.returncode and "merge_stats" not in script:
        sys.exit(done.stderr)
print(f"Submitted batch job {os.getpid()}")
"""


RUN_IT = '#!/bin/bash\nwhile [[ $1 == -* ]]; do [[ $1 == -n ]] && shift; shift; done\nexec "$@"\n'


def slurm_stand_in(commands: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`sbatch`, `srun` and `scontrol` on the path, and this package for what they start."""
    commands.mkdir()
    programs = {"sbatch": SBATCH, "srun": RUN_IT, "scontrol": "#!/bin/bash\necho here\n"}
    for name, text in programs.items():
        (commands / name).write_text(text)
        (commands / name).chmod((commands / name).stat().st_mode | stat.S_IXUSR)
    path = f"{commands}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    monkeypatch.setenv("PATH", path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
