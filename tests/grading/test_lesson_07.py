"""Lesson 07: the course's own versions under its checks, and the stages that take notes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from course.grading.checks import stages as st
from course.grading.checks.schedules import Plan, action_of, read, seconds, takes_too_long, waits_for_ever
from course.grading.exercises import EXERCISES
from course.grading.judge import judge
from course.ranks import Ranks
from course.spec import schedule, split
from course.spec.schedule import Action, as_schedule, one_f_one_b


def peak_of_pairs(actions: list[tuple[str, int]]) -> int:
    return schedule.peak_activations(as_schedule([actions])[0])


LIBRARY = [
    ("split_layers", split.split_layers),
    ("one_f_one_b", schedule.one_f_one_b),
    ("gpipe_schedule", schedule.gpipe_schedule),
    ("bubble_fraction", schedule.bubble_fraction),
    ("peak_activations", peak_of_pairs),
]


@pytest.fixture(scope="module")
def ranks() -> Iterator[Ranks]:
    with Ranks(1, device="cpu", live=False) as gang:
        yield gang


@pytest.mark.parametrize(("exercise", "function"), LIBRARY, ids=[name for name, _ in LIBRARY])
def test_the_library_passes_the_checks_of_the_exercise(
    exercise: str, function: Callable[..., Any], ranks: Ranks
) -> None:
    report = judge(EXERCISES[exercise], function, ranks=ranks)
    assert report.passed, str(report)


def test_the_library_interleaves_as_the_exercise_asks_but_refuses_less(ranks: Ranks) -> None:
    report = judge(EXERCISES["interleaved_1f1b"], schedule.interleaved_1f1b, ranks=ranks)
    assert [line.name for line in report.lines if line.status != "pass"] == ["the impossible is refused"]


@pytest.mark.parametrize(
    ("item", "action"),
    [
        ("F0", Action("F", 0)),
        ("B12.3", Action("B", 12, 3)),
        (("F", 3), Action("F", 3)),
        (["B", 3, 1], Action("B", 3, 1)),
        (("F", -1), Action("F", -1)),
        ("f0", None),
        ("F", None),
        ("", None),
        ((), None),
        (("F", 0.0), None),
        (("F", True), None),
        (("F", 10**5000), None),
        ("F" + "9" * 5000, None),
        (("W", 0), None),
    ],
)
def test_an_action_is_read_or_refused(item: Any, action: Action | None) -> None:
    assert action_of(item) == action


def test_faults_of_a_plan() -> None:
    assert read([["F0", "B0"], None]) is None
    one_by_one = Plan("f", (2, 2), read([["F0", "B0", "F1", "B1"]] * 2) or [])
    assert seconds(one_by_one) == 12 and "12 units of time where 9 are enough" in takes_too_long(one_by_one).got
    crossed = Plan("f", (2, 2), read([["F0", "B0", "F1", "B1"], ["F0", "F1", "B0", "B1"]]) or [])
    assert "stage 0 waits at B0 for stage 1; stage 1 waits at F1 for stage 0" in waits_for_ever(crossed).got
    good = Plan("f", (4, 8), [list(actions) for actions in one_f_one_b(4, 8)])
    assert good.is_complete and waits_for_ever(good) is None and takes_too_long(good) is None


def test_one_process_has_the_same_gradients_however_it_is_cut() -> None:
    m = 3
    inputs, targets = st.batch(m)
    for n in (1, 2, 4):
        whole = torch.nn.Sequential(*(st.layers(rank, n) for rank in range(n)))
        torch.stack([st.loss_of(whole(x), y) for x, y in zip(inputs, targets, strict=True)]).mean().backward()
        held = [parameter.grad.reshape(-1).tolist() for parameter in whole.parameters()]
        found = [list(numbers) for stage in st.reference(n, m).gradients for numbers in stage.values()]
        assert torch.allclose(torch.tensor(sum(held, [])), torch.tensor(sum(found, [])), atol=1e-6)


def test_a_gate_opens_when_the_neighbour_has_begun_its_third(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(st, "PATIENCE", 0.01)
    x = torch.zeros(1)
    waiting = st.Notes(1, str(tmp_path))
    waiting.enter(x)
    assert waiting.held_up == ["F"]
    sending = st.Notes(0, str(tmp_path))
    for _ in range(3):
        sending.enter(x)
    again = st.Notes(1, str(tmp_path))
    again.enter(x)
    assert again.held_up == []
