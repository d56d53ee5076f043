"""Reports: plain text without anything that changes, HTML that cannot be broken by what came back."""

from __future__ import annotations

import json

from course.grading.mistakes.lesson_05 import SUM_NOT_AVERAGE
from course.grading.report import Line, Report

REPORT = Report(
    "average_gradients",
    "practice",
    9,
    (
        Line("keeps the shape", "pass", 2),
        Line("averages", "fail", 3, "the average", "3.00 times the reference", "look", SUM_NOT_AVERAGE),
        Line("averages elsewhere", "fail", 1, "the average", "4.00 times the reference", "look", SUM_NOT_AVERAGE),
        Line("plain words", "fail", 1, "a <b>", "`x` & <script>", "read `this`"),
        Line("later", "not judged", 2),
    ),
)


def test_the_text_is_the_whole_story() -> None:
    assert str(REPORT) == "\n".join(
        [
            "average_gradients (practice): 2 of 9 points",
            "  pass  keeps the shape  [2/2]",
            "  FAIL  averages  [0/3]",
            "        got:      3.00 times the reference",
            "        expected: the average",
            "        mistake:  a sum where an average was asked. Why it looks right: `all_reduce` gives every",
            "                  rank the same numbers, the loss falls, and under Adam the scale hardly shows.",
            "        next:     The step is as many times too long as there are ranks. What turns a sum into a",
            "                  mean?",
            "  FAIL  averages elsewhere  [0/1]",
            "        got:      4.00 times the reference",
            "        expected: the average",
            "        mistake:  a sum where an average was asked, as above",
            "  FAIL  plain words  [0/1]",
            "        got:      `x` & <script>",
            "        expected: a <b>",
            "        next:     read `this`",
            "   --   later  [0/2]",
            '  Lines marked -- are judged once the check before them passes. For a nudge: hint("average_gradients").',
        ]
    )
    assert repr(REPORT) == str(REPORT)


def test_html_escapes_what_came_back() -> None:
    page = REPORT._repr_html_()
    assert "<script>" not in page and "&lt;script&gt;" in page and "<code>x</code>" in page
    assert page.count("<tr>") == page.count("</tr>") == 5
    for word in ("2 of 9 points", "FAIL", "a sum where an average was asked"):
        assert word in page


def test_points_and_names() -> None:
    assert (REPORT.points, REPORT.passed, REPORT.attempted) == (2, False, True)
    assert REPORT.mistakes == (SUM_NOT_AVERAGE.name, SUM_NOT_AVERAGE.name)
    done = Report("hello_rank", "core", 1, (Line("says hello", "pass", 1),))
    assert done.passed and str(done).endswith("All checks passed.")


def test_not_attempted_is_one_quiet_line() -> None:
    report = Report("hello_rank", "core", 3, attempted=False)
    assert str(report).splitlines() == [
        "hello_rank (core): not attempted yet, 3 points to earn",
        "  Write it in its cell, run that cell, then this one.",
    ]
    assert not report.passed and report.points == 0 and "<table" not in report._repr_html_()


def test_it_goes_through_json() -> None:
    assert Report.from_dict(json.loads(json.dumps(REPORT.to_dict()))) == REPORT
