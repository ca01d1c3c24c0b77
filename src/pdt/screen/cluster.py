"""Runs on datatrove's executors: a task a run, on Slurm or on Ray.

A task watches a process of its own and begins it again when it is lost; a task that is lost itself
is sent again by the scheduler. Whoever takes a run up waits until the attempt before has ended.

Paper: Appendix A.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pdt.config import ClusterConfig
from pdt.errors import PdtError
from pdt.provenance import write_json
from pdt.records.pipeline.cluster import joined_to_ray, refuse_slurm
from pdt.screen.place import Place
from pdt.screen.supervise import Outcome, supervise

JOBS = "jobs.json"


def submit_runs(place: Place, runs: Sequence[str], cluster: ClusterConfig, workers: int) -> str:
    """One job array, a task a run; its id. A preempted task is queued again."""
    refuse_slurm(cluster)
    from datatrove.executor import SlurmPipelineExecutor

    executor = SlurmPipelineExecutor(
        [_step(place, runs, cluster, on_ray=False)],
        tasks=len(runs),
        time=cluster.time,
        partition=cluster.partition,
        cpus_per_task=1,
        mem_per_cpu_gb=cluster.memory_gb,
        gpus_per_task=cluster.gpus,
        nodes_per_task=cluster.nodes,
        workers=workers if workers > 1 else cluster.jobs,
        job_name="pdt-screen",
        qos=cluster.qos,
        env_command=cluster.setup,
        requeue=True,
        logging_dir=str(_logs(place)),
        skip_completed=False,  # done.json says what is whole
    )
    executor.run()
    write_json(place.directory / JOBS, {"slurm": str(executor.job_id)})
    return str(executor.job_id)


def run_on_ray(place: Place, runs: Sequence[str], cluster: ClusterConfig, workers: int) -> None:
    """All runs on the Ray cluster that is there; returns when each has ended."""
    with joined_to_ray():
        from datatrove.executor import RayPipelineExecutor

        RayPipelineExecutor(
            [_step(place, runs, cluster, on_ray=True)],
            tasks=len(runs),
            workers=workers if workers > 1 else -1,
            cpus_per_task=1,
            mem_per_cpu_gb=cluster.memory_gb,
            gpus_per_task=cluster.gpus,
            nodes_per_task=cluster.nodes,
            logging_dir=str(_logs(place)),
            skip_completed=False,
        ).run()


def _logs(place: Place) -> Path:
    return place.directory.resolve() / "logs"


def _step(place: Place, runs: Sequence[str], cluster: ClusterConfig, *, on_ray: bool) -> Any:
    from datatrove.pipeline.base import PipelineStep

    directory = place.directory.resolve()

    class Task(PipelineStep):
        """One run of the screen, as a datatrove step."""

        name = "run"
        type = "pdt"

        def run(self, data: Any, rank: int = 0, world_size: int = 1) -> Any:
            parent = os.getppid()
            try:
                outcome = supervise(
                    Place.open(directory),
                    runs[rank],
                    gpus=cluster.gpus,
                    nodes=cluster.nodes,
                    # A worker of Ray that dies leaves this process behind.
                    given_up=lambda: on_ray and os.getppid() != parent,
                )
            except PdtError as error:
                raise RuntimeError(str(error)) from None  # survives the way between processes
            if outcome is Outcome.FAILED:
                raise RuntimeError(f"{runs[rank]} failed; `pdt screen status` says why.")
            return data

    return Task()
