"""The same build on datatrove's executors: here for a test, on Ray, or as a chain of Slurm jobs.

Each phase is one job array with a task a part; a last job of one task closes the corpus. Parts are
the same wherever they are done, so the bytes are those of `pdt corpus build` in processes.

Paper: §4.
"""

import logging
import os
import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from pdt.config import ClusterConfig
from pdt.errors import PdtError, UsageError
from pdt.records.pipeline.compiling import CompilingPhase
from pdt.records.pipeline.gating import SourcesPhase
from pdt.records.pipeline.layout import Build
from pdt.records.pipeline.parts import BuildPhase
from pdt.records.pipeline.run import build_corpus
from pdt.records.pipeline.teaching import TeachingPhase

Make = Callable[[list[Any], int, str, Any], Any]
"""An executor from a pipeline, its number of tasks, its name and the executor before it."""


def logs_of(build: Build) -> Path:
    """Beside the corpus: what a log says is not part of it."""
    return build.out.with_name(f"{build.out.name}.logs")


def run_on_datatrove(build: Build, workers: int) -> None:
    """Every phase with datatrove's local executor, in this command."""
    local = _datatrove().LocalPipelineExecutor

    def make(pipeline: list[Any], tasks: int, name: str, before: Any) -> Any:
        return local(
            pipeline,
            tasks=tasks,
            workers=workers,
            logging_dir=str(logs_of(build) / name),
            depends=before,
            skip_completed=False,  # our own reports say what is whole
        )

    try:
        _chain(build, make).run()
    except RuntimeError as error:
        raise PdtError(str(error)) from None


def run_on_ray(build: Build, workers: int) -> None:
    """Every phase on the Ray cluster that is there; a part whose worker died is done again."""
    with joined_to_ray() as executors:

        def make(pipeline: list[Any], tasks: int, name: str, before: Any) -> Any:
            if before is not None:
                before.run()  # a chain of its own would wait for ever after a part that failed
            return executors.RayPipelineExecutor(
                pipeline,
                tasks=tasks,
                workers=workers if workers > 1 else -1,
                mem_per_cpu_gb=build.config.cluster.memory_gb,
                logging_dir=str(logs_of(build) / name),
                skip_completed=False,
            )

        _chain(build, make).run()


@contextmanager
def joined_to_ray() -> Iterator[Any]:
    """datatrove's executors, joined to the cluster of RAY_ADDRESS or of this machine."""
    executors = _datatrove()
    with ray_cluster():
        yield executors


@contextmanager
def ray_cluster() -> Iterator[Any]:
    """Ray itself, joined to the cluster of RAY_ADDRESS or of this machine."""
    try:
        import ray
    except ImportError as error:
        raise UsageError(
            "Ray needs the ray package.\nInstall it: pip install 'pdt[cluster]'."
        ) from error
    try:
        _knock()
        ray.init(address="auto", log_to_driver=False, logging_level=logging.ERROR)
    except OSError as error:  # a ConnectionError is one
        raise UsageError(
            "No Ray cluster was found.\nBegin one with `ray start --head`, or name one in "
            "RAY_ADDRESS."
        ) from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _knock() -> None:
    """Ray itself waits minutes for a named cluster that is not there."""
    host, _, port = os.environ.get("RAY_ADDRESS", "").removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host, int(port)), timeout=10).close()


def refuse_slurm(cluster: ClusterConfig) -> None:
    """What keeps jobs from being submitted from here, before anything is written."""
    _datatrove()
    if cluster.partition is None:
        raise UsageError(
            "cluster.partition is not set.\nName the Slurm partition: --set cluster.partition=NAME."
        )
    if shutil.which("sbatch") is None:
        raise UsageError("sbatch was not found.\nSubmit from a Slurm login node.")


def submit_to_slurm(build: Build, cluster: ClusterConfig) -> list[str]:
    """Submit every phase as a job that waits for the one before; the job ids, first to last."""
    refuse_slurm(cluster)
    slurm = _datatrove().SlurmPipelineExecutor
    made: list[Any] = []

    def make(pipeline: list[Any], tasks: int, name: str, before: Any) -> Any:
        made.append(
            slurm(
                pipeline,
                tasks=tasks,
                time=cluster.time,
                partition=cluster.partition,
                cpus_per_task=1,
                mem_per_cpu_gb=cluster.memory_gb,
                workers=cluster.jobs,
                job_name=f"pdt-{name}",
                qos=cluster.qos,
                env_command=cluster.setup,
                depends=before,
                logging_dir=str(logs_of(build) / name),
                skip_completed=False,
            )
        )
        return made[-1]

    _chain(build, make).run()
    return [str(one.job_id) for one in made]


def _chain(build: Build, make: Make) -> Any:
    """The executors of all phases, each waiting for the one before; the last is returned."""
    before = None
    for phase in (SourcesPhase(build), TeachingPhase(build), CompilingPhase(build)):
        # How many shards there will be is not known yet; never more than parts of bundles.
        before = make([_step(phase)], build.parts, phase.name, before)
    return make([_step("close", build)], 1, "closing", before)


def _step(what: BuildPhase | Literal["close"], build: Build | None = None) -> Any:
    from datatrove.pipeline.base import PipelineStep

    class Part(PipelineStep):
        """One part of a phase, or the closing of the corpus, as a datatrove step."""

        name = what if isinstance(what, str) else what.name
        type = "pdt"

        def run(self, data: Any, rank: int = 0, world_size: int = 1) -> Any:
            try:
                if isinstance(what, str):
                    assert build is not None
                    build_corpus(build)
                elif rank < what.parts and what.report(rank) is None:
                    what.run(rank)
            except PdtError as error:
                raise RuntimeError(str(error)) from None  # survives the way between processes
            return data

    return Part()


def _datatrove() -> Any:
    try:
        import datatrove.executor
    except ImportError as error:
        raise UsageError(
            "A cluster needs the datatrove package.\nInstall it: pip install 'pdt[cluster]'."
        ) from error
    return datatrove.executor
