"""The recurrence against the simulator that plays every action."""

from __future__ import annotations

import pytest

from course.planner.compute import Passes
from course.planner.pipeline import pipeline_seconds
from course.spec.schedule import interleaved_1f1b, one_f_one_b, zero_bubble_h1
from course.trace.program import pipeline_program
from course.trace.simulate import Connection, simulate


def played(stages: list[Passes], m: int, chunks: int, schedule: str, hop: float) -> float:
    p, zb = len(stages), schedule != "1f1b"
    if zb:
        actions = zero_bubble_h1(p, m)
    else:
        actions = interleaved_1f1b(p, m, chunks) if chunks > 1 else one_f_one_b(p, m)
    pieces = [stages[piece % p] for piece in range(p * chunks)]
    program = pipeline_program(
        actions,
        forward=[stage.forward / chunks for stage in pieces],
        backward=[(stage.backward + (0 if zb else stage.weights)) / chunks for stage in pieces],
        weights=[stage.weights / chunks for stage in pieces] if zb else None,
        nbytes=1,
    )
    return max(span.end for span in simulate(program, lambda *_: Connection(alpha=hop)).spans)


def stages_of(p: int, last: float) -> list[Passes]:
    """Equal stages, the last of them `last` times as long: it has the head."""
    return [Passes(1.0, 1.2, 0.8)] * (p - 1) + [Passes(last, 1.2 * last, 0.8 * last)]


@pytest.mark.parametrize("last", [1.0, 1.5])
@pytest.mark.parametrize(("p", "m"), [(1, 4), (2, 3), (4, 2), (4, 8), (8, 8), (8, 32), (16, 32)])
def test_1f1b_is_exact_without_messages(p: int, m: int, last: float) -> None:
    stages = stages_of(p, last)
    assert pipeline_seconds(stages, m) == pytest.approx(played(stages, m, 1, "1f1b", 0.0))


@pytest.mark.parametrize("ends", [(0.8, 1.0), (0.8, 0.9), (0.5, 0.5)])
@pytest.mark.parametrize(("p", "m"), [(4, 16), (8, 32), (16, 64)])
def test_1f1b_with_lighter_ends_is_at_most_3_percent_late(p: int, m: int, ends: tuple[float, float]) -> None:
    stages = stages_of(p, ends[1])
    stages[0] = Passes(ends[0], 1.2 * ends[0], 0.8 * ends[0])
    exact = played(stages, m, 1, "1f1b", 0.0)
    assert exact * 0.999 <= pipeline_seconds(stages, m) <= exact * 1.03


@pytest.mark.parametrize("last", [1.0, 1.5])
@pytest.mark.parametrize("hop", [0.02, 0.1])
@pytest.mark.parametrize(("p", "m"), [(4, 16), (8, 32), (16, 64)])
def test_1f1b_with_messages(p: int, m: int, hop: float, last: float) -> None:
    stages = stages_of(p, last)
    assert pipeline_seconds(stages, m, hop=hop) == pytest.approx(played(stages, m, 1, "1f1b", hop), rel=2e-3)


@pytest.mark.parametrize("last", [1.0, 1.5])
@pytest.mark.parametrize(("p", "m", "chunks"), [(4, 4, 2), (4, 16, 3), (8, 32, 4)])
def test_interleaved(p: int, m: int, chunks: int, last: float) -> None:
    stages = stages_of(p, last)
    assert pipeline_seconds(stages, m, chunks=chunks) == pytest.approx(played(stages, m, chunks, "1f1b", 0.0))
    with_messages = played(stages, m, chunks, "1f1b", 0.02)
    assert pipeline_seconds(stages, m, chunks=chunks, hop=0.02) == pytest.approx(with_messages, rel=0.02)


@pytest.mark.parametrize("hop", [0.0, 0.03])
@pytest.mark.parametrize("last", [1.0, 1.5])
@pytest.mark.parametrize(("p", "m"), [(4, 16), (8, 32)])
def test_zero_bubble(p: int, m: int, last: float, hop: float) -> None:
    stages = stages_of(p, last)
    assert pipeline_seconds(stages, m, schedule="zb-1p", hop=hop) == pytest.approx(
        played(stages, m, 1, "zb-1p", hop), rel=0.01
    )


def test_order_of_the_schedules() -> None:
    stages = stages_of(8, 1.0)
    seconds = [pipeline_seconds(stages, 16, schedule=schedule) for schedule in ("1f1b", "zb-1p", "zb-2p")]
    assert seconds == sorted(seconds, reverse=True) and len(set(seconds)) == 3
    assert seconds[2] >= 16 * stages[0].total


@pytest.mark.parametrize("chunks", [1, 3])
def test_ranks_that_wait_pay_for_two_messages_a_chunk_and_microbatch(chunks: int) -> None:
    """What Megatron-LM's blocking exchange after each pass costs, added up by hand."""
    stages, m, hop = stages_of(4, 1.0), 16, 0.02
    free, waits = (pipeline_seconds(stages, m, chunks=chunks, hop=hop, waits=flag) for flag in (False, True))
    alone = m * 3.0 + (4 - 1) * 3.0 / chunks + 2 * (4 * chunks - 1) * hop  # passes of 3 s, fill and drain, messages
    assert waits == pytest.approx(alone + 2 * (m - 1) * chunks * hop)
    assert free < waits
    assert pipeline_seconds(stages[:1], m, hop=hop, waits=True) == pytest.approx(m * 3.0)
