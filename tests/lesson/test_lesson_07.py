"""Lesson 07's own functions, from its page: right steps agree, wrong ones are told apart, and the numbers hold."""

from __future__ import annotations

import ast
import dataclasses
import itertools
from pathlib import Path

import nbformat
import pytest

from course import Ranks
from course.errors import StallError
from course.gpt import batches, encode, load_text
from course.spec import ModelSpec
from course.spec.schedule import bubble_fraction, gpipe_schedule, interleaved_1f1b, one_f_one_b, zero_bubble_h1
from course.spec.split import split_layers, stage_costs

PAGE = Path(__file__).resolve().parents[2] / "notebooks" / "07_pipeline_parallel.ipynb"
KEPT = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)
CUTS, SIX, M = (11, 21), (6, 11, 16, 21, 26), 6
SPEC = ModelSpec(layers=30, width=16, heads=2, context=8, tied=False)  # the lesson's model, only narrower
TIED = dataclasses.replace(SPEC, tied=True)


@pytest.fixture(scope="module")
def lesson():
    """The names that the page's cells import and define, with a smaller model and batch."""
    x, y = next(batches(encode(load_text()), context=8, batch=24))
    names = {"__name__": "__main__", "x": x, "y": y, "SPEC": SPEC, "CUTS": CUTS, "LAST": 2, "M": M}
    names |= {"LARGE": SPEC, "SCHEDULES": {"GPipe": gpipe_schedule, "1F1B": one_f_one_b, "ZB-H1": zero_bubble_h1}}
    for cell in nbformat.read(PAGE, as_version=4).cells:
        if cell.cell_type == "code":
            kept = [node for node in ast.parse(cell.source).body if isinstance(node, KEPT)]
            exec(compile(ast.Module(kept, []), "<lesson 07>", "exec"), names)
    with Ranks(3, live=False) as names["ranks"]:
        yield names


def judged(lesson, capsys, run, spec=SPEC) -> list[str]:
    """What `judge` says of the loss and of all ranks' gradients."""
    lesson["judge"](run, spec)
    return [line.partition(":")[2].strip() for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize(("order", "m"), [("one_batch", 1), ("gpipe", M), ("one_forward_one_backward", M)])
def test_steps_that_are_right_agree_with_one_process(lesson, capsys, order, m):
    said = judged(lesson, capsys, lesson["ranks"].run(lesson["train"], lesson[order], m, steps=2))
    assert len(said) == 2 and all(verdict.startswith("agree") for verdict in said), said


def test_a_forgotten_share_is_caught_and_its_factor_named(lesson, capsys):
    said = judged(lesson, capsys, lesson["ranks"].run(lesson["train"], lesson["unscaled"], M))
    assert all(verdict.startswith("DIFFER: 6.00 times everywhere") for verdict in said), said


def test_tied_embeddings_differ_until_they_are_summed(lesson, capsys):
    ranks, train = lesson["ranks"], lesson["train"]
    run = ranks.run(train, lesson["gpipe"], M, CUTS, TIED)
    loss, gradients = judged(lesson, capsys, run, TIED)
    assert loss.startswith("agree") and gradients.startswith("DIFFER") and "['tokens.weight']" in gradients
    assert [("tokens.weight" in held) for _, held in run.values] == [True, False, True]
    summed = judged(lesson, capsys, ranks.run(train, lesson["gpipe_tied"], M, CUTS, TIED), TIED)
    assert all(verdict.startswith("agree") for verdict in summed), summed


def test_1f1b_with_blocking_sends_stalls_where_the_page_says(lesson):
    with pytest.raises(StallError, match="rank 1 waits in send to 2.*rank 2 waits in send to 1"):
        lesson["ranks"].run(lesson["train"], lesson["in_turn"], M)


def test_the_course_and_torch_run_the_same_step(lesson, capsys):
    ranks, run_schedule = lesson["ranks"], lesson["run_schedule"]
    runs = [
        ranks.run(run_schedule, interleaved_1f1b(3, M, 2), SIX),
        ranks.run(run_schedule, zero_bubble_h1(3, M), CUTS),
        ranks.run(lesson["with_torch"]),
    ]
    for run in runs:
        said = judged(lesson, capsys, run)
        assert all(verdict.startswith("agree") for verdict in said), said


def test_peaks_follow_the_micro_batches_held(lesson):
    all_six, few = (
        lesson["ranks"].run(lesson["peak_bytes"], lesson[name], M).values
        for name in ("gpipe", "one_forward_one_backward")
    )
    for most, least, held in zip(all_six, few, (3, 2, 1), strict=True):
        assert least / most == pytest.approx(held / M, rel=0.1)


def test_a_replayed_step_has_the_bubble_that_its_stages_leave_it(lesson):
    """Not the formula's, which wants equal stages: the measured costs, simulated as the schedule says."""
    trace = lesson["ranks"].run(lesson["train"], lesson["gpipe"], M, steps=8).trace
    steps = lesson["steps_of"](trace)
    assert len(steps) == 7
    names = {f"{kind}{k}" for kind in "FB" for k in range(M)}
    for step, rank in itertools.product(steps, range(3)):
        assert {span.name for span in lesson["pipeline_actions"](step).of(rank=rank)} == names
    replayed, costs = lesson["replayed"](steps)
    costs = {(rank, name): seconds for (rank, name), seconds in costs.items() if name in names}
    busiest = max(sum(seconds for (r, _), seconds in costs.items() if r == rank) for rank in range(3))
    assert replayed.seconds >= busiest + min(costs.values())  # rank 0 begins alone: nobody is busy all of the time
    assert 0 < lesson["bubble"](replayed) < 0.6


def test_what_the_page_says_about_its_formulas():
    assert bubble_fraction(3, M) == 0.25 and bubble_fraction(3, 1) == pytest.approx(2 / 3)
    for p, m in itertools.product((2, 3, 5), (1, 4, 9)):
        amdahl = 1 / (1 / m + (1 - 1 / m) / p)
        assert p * m / (m + p - 1) == pytest.approx(amdahl)
        assert bubble_fraction(p, 9 * (p - 1)) == pytest.approx(0.1)


def test_the_turns_of_the_two_splits(lesson):
    turns = {cuts: lesson["turns"](cuts) for cuts in itertools.combinations(range(1, 30), 2)}
    assert len(turns) == 406 and turns[10, 20] == 396
    assert min(turns.values()) == 348 == turns[12, 23]


@pytest.mark.parametrize(("name", "kinds"), [("GPipe", "FB"), ("1F1B", "FB"), ("ZB-H1", "FBW")])
def test_the_splitters_run_trains_the_split_it_is_given(lesson, name, kinds):
    step = lesson["train_split"]([12, 23], 4, name)
    for rank in range(3):
        assert {span.name for span in step.of(rank=rank)} == {f"{kind}{k}" for kind in kinds for k in range(4)}
    forwards = [sum(s.seconds for s in step.of(rank=r) if s.name[0] == "F") for r in range(3)]
    assert forwards[2] < min(forwards[:2])  # 7 layers against 12 and 11


def test_126_layers_and_a_head_fit_sixteen_stages_of_eight():
    head = 128_000 * 16_384 / (2 * 16_384**2 + 2 * 16_384 * 1024 + 3 * 16_384 * 53_248)
    slowest = {}
    for layers in (126, 127, 128):
        costs = [1.0] * layers + [head]
        slowest[layers] = max(stage_costs(costs, split_layers(costs, 16)))
    assert slowest[126] == slowest[127] == 8 and slowest[128] == pytest.approx(8 + head)
    assert 126 + 2 == 16 * 8
    assert stage_costs([1.0] * 126, tuple(7 + 8 * k for k in range(15))) == (7, *[8] * 14, 7)


def test_gpipe_and_1f1b_are_the_schedules_that_the_page_prints():
    assert " ".join(map(str, one_f_one_b(3, M)[2])) == "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5"
    assert gpipe_schedule(3, M)[0][:M] == tuple(a for a in one_f_one_b(3, M)[0] if a.kind == "F")
