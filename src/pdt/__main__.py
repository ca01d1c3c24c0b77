"""The `pdt` command, also as `python -m pdt`."""

import signal


def main() -> None:
    """Load the commands and run the one that is asked for."""
    # While modules load, Ctrl-C ends the process as a shell expects, without a traceback.
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    from pdt.cli import main as run

    signal.signal(signal.SIGINT, before)
    run()


if __name__ == "__main__":
    main()
