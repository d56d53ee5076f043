"""Schedules against torch's lists, hand-made gold lists, and what every schedule owes."""

from __future__ import annotations

from collections import Counter

import pytest

from course.errors import UsageError
from course.spec.schedule import (
    Action,
    as_schedule,
    bubble_fraction,
    gpipe_schedule,
    interleaved_1f1b,
    one_f_one_b,
    parse_actions,
    peak_activations,
    zero_bubble_h1,
)

SIZES = [(stages, microbatches) for stages in range(1, 9) for microbatches in range(1, 17)]
GOLD = {
    (gpipe_schedule, 2, 3): ("F0 F1 F2 B0 B1 B2", "F0 F1 F2 B0 B1 B2"),
    (one_f_one_b, 2, 3): ("F0 F1 B0 F2 B1 B2", "F0 B0 F1 B1 F2 B2"),
    (one_f_one_b, 3, 4): ("F0 F1 F2 B0 F3 B1 B2 B3", "F0 F1 B0 F2 B1 F3 B2 B3", "F0 B0 F1 B1 F2 B2 F3 B3"),
    (one_f_one_b, 4, 2): ("F0 F1 B0 B1", "F0 F1 B0 B1", "F0 F1 B0 B1", "F0 B0 F1 B1"),
    (one_f_one_b, 1, 2): ("F0 B0 F1 B1",),
    (zero_bubble_h1, 2, 3): ("F0 F1 B0 W0 F2 B1 W1 B2 W2", "F0 B0 F1 B1 W0 F2 B2 W1 W2"),
}


@pytest.mark.parametrize("asked", GOLD, ids=lambda asked: f"{asked[0].__name__}-{asked[1]}-{asked[2]}")
def test_small_schedules_are_those_written_by_hand(asked):
    schedule, stages, microbatches = asked
    assert schedule(stages, microbatches) == tuple(parse_actions(text) for text in GOLD[asked])


def test_an_interleaved_schedule_written_by_hand():
    assert interleaved_1f1b(2, 2, 2) == (
        parse_actions("F0 F1 F0.1 F1.1 B0.1 B1.1 B0 B1"),
        parse_actions("F0 F1 F0.1 B0.1 F1.1 B1.1 B0 B1"),
    )


def test_a_schedule_prints_as_it_is_spoken():
    assert str(one_f_one_b(2, 3)[1]) == "(F0, B0, F1, B1, F2, B2)"
    assert repr(Action("F", 3, 1)) == "F3.1"


def torch_lists(schedule, stages, microbatches, chunks):
    """torch's list a rank without idle slots, from one process with a group that only pretends; None if it refuses."""
    import torch
    import torch.distributed as dist
    from torch.distributed.pipelining import PipelineStage, schedules
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=stages)
    try:
        pieces = [
            PipelineStage(torch.nn.Linear(1, 1), chunk * stages, chunks * stages, torch.device("cpu"))
            for chunk in range(chunks)
        ]
        kind = getattr(schedules, schedule)
        multi = issubclass(kind, schedules.PipelineScheduleMulti)
        made = kind(pieces if multi else pieces[0], microbatches, loss_fn=lambda output, target: output.sum())
    except ValueError:
        return None
    finally:
        dist.destroy_process_group()
    kinds = {"F": "F", "B": "B", "I": "B", "W": "W"}
    return tuple(
        tuple(
            Action(kinds[a.computation_type.value], a.microbatch_index, a.stage_index // stages)
            for a in made.pipeline_order[rank]
            if a is not None and a.computation_type.value in kinds
        )
        for rank in range(stages)
    )


@pytest.mark.parametrize(
    ("torchs", "ours", "chunks"),
    [
        ("ScheduleGPipe", gpipe_schedule, 1),
        ("ScheduleInterleaved1F1B", lambda p, m: interleaved_1f1b(p, m, 2), 2),
        ("ScheduleInterleaved1F1B", lambda p, m: interleaved_1f1b(p, m, 3), 3),
        ("ScheduleInterleavedZeroBubble", zero_bubble_h1, 1),
    ],
)
def test_lists_are_torchs_wherever_torch_takes_the_size(torchs, ours, chunks):
    compared = 0
    for stages, microbatches in SIZES:
        theirs = torch_lists(torchs, stages, microbatches, chunks)
        if theirs is not None:
            assert ours(stages, microbatches) == theirs, (stages, microbatches)
            compared += 1
    assert compared > 90


def schedules_of(stages, microbatches):
    yield gpipe_schedule(stages, microbatches)
    yield one_f_one_b(stages, microbatches)
    yield zero_bubble_h1(stages, microbatches)
    for chunks in (2, 3):
        if microbatches % max(1, microbatches // stages) == 0:
            yield interleaved_1f1b(stages, microbatches, chunks)


@pytest.mark.parametrize(("stages", "microbatches"), SIZES)
def test_each_action_comes_once_and_a_backward_after_its_forward(stages, microbatches):
    for schedule in schedules_of(stages, microbatches):
        kinds = "FBW" if any(action.kind == "W" for action in schedule[0]) else "FB"
        chunks = {action.chunk for action in schedule[0]}
        wanted = {Action(kind, k, chunk) for kind in kinds for k in range(microbatches) for chunk in chunks}
        for actions in schedule:
            assert Counter(actions) == Counter(wanted)
            place = {action: i for i, action in enumerate(actions)}
            for action in actions:
                order = [place[Action(kind, action.microbatch, action.chunk)] for kind in kinds]
                assert order == sorted(order)


@pytest.mark.parametrize(("stages", "microbatches"), SIZES)
def test_a_stage_holds_no_more_than_theory_allows(stages, microbatches):
    for stage in range(stages):
        assert peak_activations(gpipe_schedule(stages, microbatches)[stage]) == microbatches
        assert peak_activations(one_f_one_b(stages, microbatches)[stage]) == min(microbatches, stages - stage)
        assert peak_activations(zero_bubble_h1(stages, microbatches)[stage]) <= min(microbatches, stages)
    if microbatches % stages == 0:
        for chunks in (2, 3):
            held = peak_activations(interleaved_1f1b(stages, microbatches, chunks)[0])
            assert held <= min(microbatches * chunks, (chunks - 1) * stages + 2 * (stages - 1) + 1)


def test_the_bubble_of_equal_stages():
    assert bubble_fraction(4, 8) == 3 / 11
    assert bubble_fraction(4, 8, chunks=2) == 3 / 19
    assert bubble_fraction(1, 5) == 0


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: gpipe_schedule(0, 3), r"gpipe_schedule\(stages=0\): stages must be a whole number of at least 1"),
        (lambda: one_f_one_b(2, 0), "microbatches=0"),
        (lambda: one_f_one_b(2, 1.5), "microbatches=1.5"),
        (lambda: interleaved_1f1b(4, 9, 2), "must be divisible by stages; try 8"),
        (lambda: bubble_fraction(2, 2, chunks=0), "chunks=0"),
        (lambda: parse_actions("F0 X1"), "'X1' is no action"),
        (lambda: as_schedule([["F0"], [3]]), "has 3"),
    ],
)
def test_the_impossible_is_refused_in_a_sentence(call, says):
    with pytest.raises(UsageError, match=says):
        call()


def test_schedules_are_read_from_words_and_pairs():
    assert as_schedule([["F0", ("B", 0)], [("F", 0, 1), Action("B", 0)]]) == (
        parse_actions("F0 B0"),
        parse_actions("F0.1 B0"),
    )
