"""``utils.benchmark``: reports of times."""

import pickle

import pytest

import taeda
from taeda.utils import benchmark


def measured(times, **names):
    return benchmark.Measurement(10, times, benchmark.TaskSpec("x + 1", "pass", **names))


def test_a_report_says_what_was_timed():
    timer = benchmark.Timer("x + 1", "x = torch.ones(3)", label="add", sub_label="[3]", description="one")
    lines = repr(timer.timeit(10)).splitlines()
    assert lines[1:4] == ["add: [3]", "one", "setup: x = torch.ones(3)"]
    assert lines[5] == "  1 measurement, 10 runs , 1 thread"
    timer = benchmark.Timer(
        "x + y",
        """
        x = torch.ones(3)
        y = x + 1
    """,
    )
    assert repr(timer.timeit(10)).splitlines()[2:5] == ["setup:", "  x = torch.ones(3)", "  y = x + 1"]
    text = repr(measured([1e-4, 1e-4, 1e-4, 2e-4, 2e-4]))
    assert "  Median: 10.00 us\n  IQR:    10.00 us (10.00 to 20.00)\n  5 measurements, 10 runs per" in text
    assert "WARNING: Interquartile range is 100.0% of the median" in text
    with pytest.raises(NotImplementedError):
        timer.collect_callgrind()
    with pytest.raises(ValueError, match="only Python"):
        benchmark.Timer(language=benchmark.Language.CPP)


def test_measurements_have_names_and_are_pickled():
    m = pickle.loads(pickle.dumps(measured([1e-4, 1.1e-4], label="add", sub_label="[3]", num_threads=2)))
    assert (m.label, m.stmt, m.num_threads, m.as_row_name, m.title) == ("add", "x + 1", 2, "[3]", "add: [3]")
    assert m.task_spec.sub_label == "[3]" and not m.has_warnings and m.meets_confidence(0.2)
    (merged,) = benchmark.Measurement.merge([m, m])
    assert merged.times == m.times * 2
    assert not hasattr(m, "nothing")


def test_a_table_of_measurements():
    results = [
        measured([t * 1e-5], label="dot", sub_label=row, description=column, num_threads=threads)
        for threads in (2, 1)
        for row, column, t in (("[1]", "sum", 2.04), ("[1]", "bmm", 15.24), ("[64]", "sum", 123.0))
    ]
    compare = benchmark.Compare(results)
    lines = str(compare).splitlines()
    assert lines[0].startswith("[---") and " dot " in lines[0] and lines[0].endswith("---]")
    assert lines[1].split() == ["|", "sum", "|", "bmm"]
    assert lines[2].startswith("1 threads: ---")
    assert lines[3].split() == ["[1]", "|", "2.0", "|", "15.2"]
    assert lines[4].split() == ["[64]", "|", "123.0", "|"]
    assert lines[5].startswith("2 threads: ---") and lines[9] == "Times are in microseconds (us)."
    compare.trim_significant_figures()
    assert str(compare).splitlines()[4].split()[:3] == ["[64]", "|", "123"]


def test_units():
    assert benchmark.select_unit(2e-5) == ("us", 1e-6) and benchmark.unit_to_english("ms") == "millisecond"
    assert benchmark.trim_sigfig(123.456, 2) == 120.0 and benchmark.ordered_unique("abca") == ["a", "b", "c"]
    assert taeda.get_num_threads() > 0
