"""The plots of a report, where a measurement has nothing to show."""

from pdt.evaluation.report.plots import trace


def test_a_trace_of_no_time_is_a_flat_line() -> None:
    assert trace((), block_tokens=32) == ""
    flat = trace((0.0, 0.0), block_tokens=32)
    assert "longest 0.0 ms" in flat
    assert (
        len({point.split(",")[1] for point in flat.split('points="')[1].split('"')[0].split()}) == 1
    )
