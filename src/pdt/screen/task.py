"""One run of a screen from its entry to its verdict; killed anywhere, it goes on from there.

`python -m pdt.screen.task SCREEN RUN` is the process of one run, or one rank of several. It ends
with whoever started it, at the end of its standard input.

Paper: Appendix A.
"""

import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from pdt.binding import bind
from pdt.config import PdtConfig
from pdt.errors import BindingMismatch, PdtError
from pdt.evaluation.evaluate import evaluate
from pdt.evaluation.generate.open import Asked
from pdt.evaluation.protocol.conditions import Weights
from pdt.evaluation.report.results import RESULTS
from pdt.evaluation.screens.screen import ScreenChoice
from pdt.lock import hold_run
from pdt.provenance import MANIFEST, code_digest, code_revision, sha256_file, write_json
from pdt.records.batch import RecordShards
from pdt.screen.manifest import ANY_CODE, Screen, SealedCorpus, SealedRun
from pdt.screen.place import DONE, ENTRY, TRAIN, VERDICT, Done, Place, begin_anew, now
from pdt.screen.start import start_model
from pdt.terms import Split
from pdt.training.checkpoint import latest_checkpoint
from pdt.training.loop import Trainer
from pdt.training.ranks import Ranks
from pdt.training.watch.metrics import STEP, Metrics, read_metrics

STOPPED_CODE = 4
"""The exit code of a run that was asked to stop and kept what it had."""
_OTHER = "A run is its sealed entry and nothing else. Give what the seal names, or compile another."


class StopAsked(Exception):
    """Somebody wants the screen to stop."""


def check_inputs(screen: Screen) -> None:
    """Refuse another corpus, start or code than the seal names."""
    for what, sealed in (("records", screen.records), ("held_out", screen.held_out)):
        _check_corpus(what, sealed)
    start = screen.start
    if start.model is not None:
        manifest = Path(start.model) / MANIFEST
        found = sha256_file(manifest) if manifest.is_file() else "missing"
        _same("start", start.manifest_sha256 or "", found, start.model)
    code = code_digest()
    if ANY_CODE not in screen.code.allowed and code not in screen.code.allowed:
        _same("code", screen.code.digest, code, f"revision {code_revision()}")


def do_run(place: Place, run: str) -> None:
    """Train and judge a run of a sealed screen, once."""
    ranks, screen, directory = Ranks(), place.screen, place.of(run)
    entry = screen.entry(run)
    with ExitStack() as held:
        if ranks.first:
            held.enter_context(place.held(run))
        ready = ranks.first and (place.done(run) is not None or place.stop_asked)
        if ranks.broadcast("end" if ready else ""):
            if place.done(run) is None:
                raise StopAsked
            return
        with ranks.together():
            check_inputs(screen)
            config = screen.config_of(entry)
            if ranks.first:
                _bind(place, entry)
                begin_anew(directory)
        checkpoint = _train(place, entry, config, ranks, held)
        if ranks.first:
            _judge(place, entry, checkpoint)
    ranks.leave()


def _bind(place: Place, entry: SealedRun) -> None:
    bind(
        place.of(entry.run) / ENTRY,
        {"seal": place.screen.seal, **entry.model_dump(mode="json")},
        f"{place.of(entry.run)} was begun as another run.",
        _OTHER,
    )


def _train(
    place: Place, entry: SealedRun, config: PdtConfig, ranks: Ranks, held: ExitStack
) -> Path:
    """The checkpoint at the end of the curriculum."""
    train = place.of(entry.run) / TRAIN
    shards = RecordShards(Path(place.screen.records.directory), split=Split.TRAIN)
    if ranks.first:
        train.mkdir(exist_ok=True)
        held.enter_context(hold_run(train))
    found = str(latest_checkpoint(train) or "") if ranks.first else ""
    if ranks.broadcast(found):
        trainer = Trainer.resume(shards, train, config, ranks=ranks)
    else:
        with ranks.together():
            model = start_model(place.screen.start, config, entry.seed)
        trainer = Trainer(model, shards, train, inputs=_inputs(place.screen, entry), ranks=ranks)

    def stop(line: Metrics) -> None:
        border = line["step"] + 1 in trainer.borders  # is saved in a moment, with what it measured
        if line["kind"] == STEP and not border and place.stop_asked:
            raise StopAsked

    try:
        trainer.train(watch=stop if ranks.count == 1 else lambda line: None)
    except StopAsked:
        trainer.save()
        raise
    checkpoint = latest_checkpoint(train)
    assert checkpoint is not None, "training saves at its end"
    return checkpoint


def _inputs(screen: Screen, entry: SealedRun) -> dict[str, Any]:
    """What the run's manifest names beside its records and its trunk."""
    start = {"directory": screen.start.model, "manifest_sha256": screen.start.manifest_sha256}
    return {
        "seed": entry.seed,
        "screen": {"seal": screen.seal, "run": entry.run},
        **({} if screen.start.model is None else {"model": start}),
    }


def _judge(place: Place, entry: SealedRun, checkpoint: Path) -> None:
    screen, directory = place.screen, place.of(entry.run)
    judged, compared = screen.design.judged, screen.design.compared
    asked = Asked(
        Path(screen.held_out.directory),
        {Weights.BUS: checkpoint},
        split=judged.split,
        screens=ScreenChoice(judged.screen),
        documents=judged.documents,
        alone=True,
        settings={
            "few_documents": judged.few,
            "batch": judged.batch,
            "conditions": judged.conditions,
            "seed": compared.seed,
            "resamples": compared.resamples,
            "confidence": compared.confidence,
            "repeats": 1,  # speeds are not compared
        },
    )

    def watch(label: str, done: int) -> None:
        if place.stop_asked:
            raise StopAsked

    begun = time.monotonic()
    if not (directory / VERDICT / RESULTS).is_file():  # else killed between verdict and done.json
        evaluate(asked, directory / VERDICT, watched=lambda runs: watch)
    steps = [line for line in read_metrics(directory / TRAIN) if line["kind"] == STEP]
    done = Done(
        seal=screen.seal,
        run=entry.run,
        checkpoint=str(checkpoint.relative_to(directory)),
        manifest_sha256=sha256_file(directory / VERDICT / MANIFEST),
        results_sha256=sha256_file(directory / VERDICT / RESULTS),
        code=code_digest(),
        train_seconds=round(sum(line["seconds"] for line in steps), 3),
        judge_seconds=round(time.monotonic() - begun, 3),
        at=now(),
    )
    write_json(directory / DONE, done.model_dump(mode="json"))


def _check_corpus(what: str, sealed: SealedCorpus) -> None:
    _same(what, sealed.digest, RecordShards(Path(sealed.directory)).digest, sealed.directory)


def _same(what: str, sealed: str, found: str, where: str) -> None:
    if sealed != found:
        raise BindingMismatch(
            f"This is another {what} than the screen was compiled with ({where}).",
            [(what, sealed[:12], found[:12])],
            _OTHER,
            sides=("sealed", "found"),
        )


def attempt(place: Place, run: str, do: Callable[[Place, str], None] = do_run) -> int:
    """Do a run; its exit code. What stops it by its own fault is kept as a failure."""
    try:
        do(place, run)
    except StopAsked:
        return STOPPED_CODE
    except Exception as error:
        if int(os.environ.get("RANK", "0")) == 0:
            place.of(run).mkdir(parents=True, exist_ok=True)
            place.fail(run, error)
        traceback.print_exc()
        return PdtError.exit_code
    return 0


def main() -> int:
    def end_with_input() -> None:
        while os.read(0, 1):
            pass
        os._exit(1)

    threading.Thread(target=end_with_input, daemon=True).start()
    return attempt(Place.open(Path(sys.argv[1])), sys.argv[2])


if __name__ == "__main__":
    sys.exit(main())
