"""Every answer in the bank gets the verdict, and every wrong one the hint, that is meant for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from course.grading.exercises import EXERCISES
from course.grading.judge import judge
from course.grading.mistakes import MISTAKES
from course.ranks import Ranks
from tests.grading.bank import Answer, answers

BANK = list(answers())


@pytest.fixture(scope="module")
def ranks() -> Iterator[Ranks]:
    """One gang for all answers of the bank: none of them harms a rank (those that do are in test_mishaps)."""
    with Ranks(3, device="cpu", live=False) as gang:
        yield gang


def slow_ones(bank: list[Answer]) -> Iterator[bool]:
    """For each answer, whether it waits for the slow tests: of each exercise, all but the first right answer and
    the first answer of each of three named mistakes."""
    rights: Counter[str] = Counter()
    named: dict[str, set[str]] = {}
    for answer in bank:
        met = named.setdefault(answer.exercise, set())
        if answer.kind == "right":
            rights[answer.exercise] += 1
            yield rights[answer.exercise] > 1
        else:
            yield not answer.label or answer.label in met or len(met) >= 3
            met |= {answer.label} if answer.label and len(met) < 3 else set()


CASES = [
    pytest.param(answer, id=str(answer), marks=[pytest.mark.slow] if slow else [])
    for answer, slow in zip(BANK, slow_ones(BANK), strict=True)
]


@pytest.mark.parametrize("answer", CASES)
def test_the_answer_gets_its_verdict(answer: Answer, ranks: Ranks) -> None:
    report = judge(EXERCISES[answer.exercise], answer.build(), ranks=ranks)
    if answer.kind == "right":
        assert report.passed, f"a right answer ({answer.label}) was refused:\n{report}"
        return
    assert report.attempted and not report.passed, f"a wrong answer passed:\n{report}"
    for line in report.lines:
        if line.status == "fail":
            assert line.got and line.expected and (line.mistake or line.advice), f"says too little: {line}"
    text = " ".join(str(report).split())
    if answer.label:
        assert report.mistakes[:1] == (MISTAKES[answer.label].name,), f"expected {answer.label}:\n{report}"
        assert " ".join(MISTAKES[answer.label].hint.split()) in text
    assert answer.says in text, f"expected to read {answer.says!r}:\n{report}"
    if answer.points is not None:
        assert report.points == answer.points, str(report)


@pytest.mark.parametrize("exercise", EXERCISES)
def test_each_exercise_has_enough_answers(exercise: str) -> None:
    found = [answer for answer in BANK if answer.exercise == exercise]
    kinds = Counter(answer.kind for answer in found)
    assert kinds["wrong"] >= 5 and kinds["right"] >= 2
    assert len({answer.label for answer in found if answer.kind == "wrong" and answer.label}) >= 5


def test_each_named_mistake_is_met_by_an_answer() -> None:
    met = {answer.label for answer in BANK if answer.kind == "wrong"}
    assert sorted(set(MISTAKES) - met) == []
