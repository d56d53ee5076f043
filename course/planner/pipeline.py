"""How long a pipeline takes, by recurrence: what `trace.simulate` finds by playing every action, in microseconds.

Exact for free messages and equal inner stages (tests compare both); messages lengthen 1F1B's cycle.
"""

from __future__ import annotations

from collections.abc import Sequence

from course.planner.compute import Passes


def pipeline_seconds(
    stages: Sequence[Passes],
    microbatches: int,
    *,
    chunks: int = 1,
    schedule: str = "1f1b",
    hop: float = 0.0,
    waits: bool = False,
) -> float:
    """Seconds from the first forward to the last backward of a step.

    stages: Passes of one microbatch on each rank (all its chunks together). hop: seconds of one message to a neighbour.
    waits: a rank stands still while it exchanges messages, once after each pass of each chunk (1F1B alone, which does
    so nearly anyway: a microbatch's way there and back is part of its cycle).
    1F1B: (sum of all stages) + (m-1) cycles. Interleaved: fill and drain are v times shorter and cross v times as many
    boundaries (Narayanan et al. 2021, section 2.2). ZB-1p: F+B-W idle for each stage but the slowest, ZB-2p and ZB-V
    F+B-2W, W of the slowest, never below 0 (Qi et al. 2024, section 4.2). Messages are sent as soon as they are there.
    """
    p, m = len(stages), microbatches
    slowest = max(stages, key=lambda stage: stage.total)
    if schedule != "1f1b":
        busiest = stages.index(slowest)
        others = [stage for index, stage in enumerate(stages) if index != busiest]
        idle = sum(_idle(stage, slowest.weights, schedule) for stage in others)
        return m * slowest.total + idle + (p - 1) * hop
    fill = sum(stage.total for stage in stages) - slowest.total
    crossing = 2 * (p * chunks - 1) * hop
    waited = 2 * chunks * hop if waits and p > 1 else 0.0
    if chunks > 1:
        return slowest.total + fill / chunks + crossing + (m - 1) * (slowest.total + waited)
    return fill + slowest.total + crossing + (m - 1) * max(slowest.total + waited, _cycle(stages, m, hop))


def _idle(stage: Passes, weights: float, schedule: str) -> float:
    """What a stage adds to fill and drain: passes to the weights hide its backward (ZB-1p), or its
    forward too (the others)."""
    if schedule == "zb-1p":
        return stage.forward + max(0.0, stage.backward - weights)
    return max(0.0, stage.forward + stage.backward - 2 * weights)


def _cycle(stages: Sequence[Passes], microbatches: int, hop: float) -> float:
    """Seconds from one microbatch to the next in 1F1B: the slowest stage, or the round trip from a stage to the end and
    back, shared by the p - i microbatches that stage i may have on the way."""
    p, behind, cycle = len(stages), 0.0, 0.0
    for stage in range(p - 1, -1, -1):
        behind += stages[stage].total
        cycle = max(cycle, stages[stage].total)
        if microbatches > p - stage:
            cycle = max(cycle, (behind + 2 * (p - 1 - stage) * hop) / (p - stage))
    return cycle
