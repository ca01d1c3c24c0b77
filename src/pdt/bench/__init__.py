"""Benchmarks: ratios taken in one run, interleaved, medians with spread. Never a unit test."""
