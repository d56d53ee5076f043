"""Checks of `hybrid_step`: on six layouts, two steps against one process; what is equal to the bit, what is sent."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from course.grading.bench import Bench, Result, Seat, Trouble
from course.grading.check import Check, Finding
from course.grading.checks import hybrid_missteps as missteps
from course.grading.checks import hybrid_model as hm
from course.grading.checks import hybrid_norms
from course.grading.checks.averaging import stopped_by_order
from course.grading.checks.hello import lazy
from course.grading.checks.hybrid_model import Mesh
from course.grading.checks.hybrid_stage import groups_of, optimizer_of, stage_of
from course.grading.checks.messages import close
from course.grading.mistakes import lesson_09_challenge as known
from course.grading.plain import TensorData, plain, real_number, type_in_words
from course.ranks import calls_made
from course.trace.statistics import bytes_sent, total_bytes

LAYOUTS = ((2, 1, 2), (1, 2, 2), (2, 2, 1), (1, 3, 1), (2, 2, 2), (1, 1, 1))  # dp, pp, tp
EVEN = tuple(Mesh(*layout, samples=4) for layout in LAYOUTS)
UNEVEN = (Mesh(2, 1, 2, samples=5), Mesh(2, 2, 1, samples=3), Mesh(3, 1, 1, samples=7))
EVERY = (*EVEN[:3], *UNEVEN, *EVEN[3:])  # so that the gang changes its size seldom
SMALL = tuple(case for case in EVERY if case.n <= 4)  # eight ranks only for answers that are right on fewer
CLIPPED = tuple(replace(case, max_norm=0.25) for case in EVEN[:5])
TOLERANCE = 1e-4
SLACK = 96  # bytes a rank and step besides the gradients: a norm's and a loss's numbers


def probe(learner: Any, case: Mesh, seat: Seat) -> Any:
    """Runs in the rank: STEPS steps without clipping, one with, on fresh stages, and what each of them did."""
    groups = groups_of(case, seat.rank)
    steps, calls = _steps(learner, case, seat, groups, hm.STEPS)
    more, clipped_calls = _steps(learner, replace(case, max_norm=CLIPPED[0].max_norm), seat, groups, 1)
    return {"steps": [*steps, *more], "calls": (calls, clipped_calls)}


def _steps(
    learner: Any, case: Mesh, seat: Seat, groups: dict[str, Any], count: int
) -> tuple[list[Any], tuple[int, int]]:
    """What each step did, and the numbers of the first call and of the one after the last."""
    stage = stage_of(case, seat, groups)
    optimizer = optimizer_of(stage)
    first_call = calls_made()
    steps = []
    for step in range(count):
        x, y = hm.batch(case, step)
        given = [plain(x), plain(y)]
        passed, taken = len(stage.notes), len(optimizer.taken)
        returned = plain(learner(stage, optimizer, x, y, dict(groups), case.max_norm))
        steps.append(
            {
                "returned": returned,
                "passes": stage.notes[passed:],
                "taken": optimizer.taken[taken:],
                "weights": {name: plain(p) for name, p in stage.named_parameters()},
                "spoiled": [plain(x), plain(y)] != given,
            }
        )
    return steps, (first_call, calls_made())


def _run(bench: Bench, case: Mesh) -> Result | Finding:
    """The result of a run, or a finding where it stopped in a way that has a name. Raises Trouble for the others."""
    try:
        result = bench.run(probe, replace(case, max_norm=hm.NO_LIMIT), n=case.n)
    except Trouble as trouble:
        if case.pp > 2 and stopped_by_order(trouble):
            return Finding(f"{case}: {trouble.got}", "", "", known.HYBRID_MIDDLE_STAGE)
        both_call = len(re.findall(r"waits? in all_reduce", trouble.got)) > 1  # stages have other numbers of parameters
        if "MismatchError" in trouble.got or (trouble.kind == "stalled" and both_call):
            return Finding(f"{case}: {trouble.got}", "", "", known.HYBRID_OTHER_PARTS)
        first = _wrong_gradients(bench, EVEN[0]) if case != EVEN[0] else None  # what went wrong where it did not stop
        if first and first.mistake:
            return Finding(f"{case}: {trouble.got}", "", "", first.mistake)
        raise
    half = int(case.max_norm != hm.NO_LIMIT)
    mine = slice(hm.STEPS, None) if half else slice(hm.STEPS)
    values = tuple({"steps": value["steps"][mine], "calls": value["calls"][half]} for value in result.values)
    return replace(result, values=values)


# --- whose data -------------------------------------------------------------------------------------------------------


def _data(bench: Bench) -> Finding | None:
    return next((f for case in SMALL if (f := _parts(bench, case))), None)


def _parts(bench: Bench, case: Mesh) -> Finding | None:
    result = _run(bench, case)
    if isinstance(result, Finding):
        return result
    x, y = (plain(t) for t in hm.batch(case, 0))
    for rank, value in enumerate(result.values):
        step = value["steps"][0]
        if mistake := lazy(step["returned"]):
            return Finding(f"{case}, it returned {type_in_words(step['returned'])}", "", "", mistake)
        if len(step["passes"]) != 1:
            got = f"{case}, rank {rank} called `forward_backward` {len(step['passes'])} times in a step"
            return Finding(got, "once", "It runs all microbatches of what it is given.")
        note, part = step["passes"][0], case.parts()[case.place(rank)["dp"]]
        if (note["x"], note["y"]) != (_rows(x, part), _rows(y, part)):
            return Finding(
                f"{case}, rank {rank} trains on {_which(note['x'], x)}",
                f"on samples {part.start} to {part.stop - 1}",
                "Print each rank's index along dp, and what it trains on.",
                missteps.behind_data(result, x, case),
            )
        if step["spoiled"]:
            return Finding(f"{case}, rank {rank} changed `x` or `y`", "the batch as it was")
    return None


def _rows(data: TensorData, part: range) -> TensorData:
    size = len(data.numbers) // data.shape[0]
    return TensorData(
        data.dtype,
        (len(part), *data.shape[1:]),
        data.device,
        data.numbers[part.start * size : part.stop * size],
    )


def _which(data: Any, whole: TensorData) -> str:
    """What part of the batch this is, in words."""
    if type(data) is not TensorData or len(data.shape) != 2:
        return type_in_words(data)
    for start in range(whole.shape[0]):
        if _rows(whole, range(start, start + data.shape[0])) == data:
            return f"samples {start} to {start + data.shape[0] - 1}"
    return f"{data.shape[0]} samples that do not follow one another"


# --- gradients, norm, weights -----------------------------------------------------------------------------------------


def _gradients(bench: Bench, cases: Sequence[Mesh]) -> Finding | None:
    return next((f for case in cases if (f := _wrong_gradients(bench, case))), None)


def _wrong_gradients(bench: Bench, case: Mesh) -> Finding | None:
    result = _run(bench, case)
    if isinstance(result, Finding):
        return result
    for rank, value in enumerate(result.values):
        taken = value["steps"][0]["taken"]
        if len(taken) != 1:
            got = f"{case}, rank {rank} called `optimizer.step()` {len(taken)} times in a step"
            return Finding(got, "once", "Every rank updates its own part, once a step.")
        for name, want in missteps.wanted(case, rank, 0).items():
            if not close(hm.numbers_of(taken[0][name]), want, TOLERANCE):
                got = f"{case}, on rank {rank} {_how(taken[0][name], want, name)}"
                advice = "Ask of each parameter who holds it too, and what each of them has seen."
                return Finding(got, "", advice, missteps.behind_gradients(result, case))
    return None


def _how(got: Any, want: Sequence[float], name: str) -> str:
    numbers = hm.numbers_of(got)
    if len(numbers) != len(want):
        return f"the gradient of `{name}` is {type_in_words(got)}"
    k = max(range(len(want)), key=lambda k: abs(numbers[k] - want[k]))
    return f"one number of the gradient of `{name}` ({_word(name)}) is {numbers[k]:.4g} where {want[k]:.4g} is right"


def _word(name: str) -> str:
    return "tied" if name == "tokens" else "one of `shards`" if hm.cut_of(name) is not None else "one of `copies`"


def _clipped(bench: Bench) -> Finding | None:
    for case in CLIPPED:
        result = _run(bench, case)
        if isinstance(result, Finding):
            return result
        norm = hm.whole(case.samples, case.max_norm).norms[0]
        for rank, value in enumerate(result.values):
            if len(value["steps"][0]["taken"]) != 1 or len(value["steps"][0]["passes"]) != 1:
                got = f"{case} and max_norm {case.max_norm}, rank {rank} does not make one pass and one step"
                return Finding(got, "a step, however large the norm is", "Clipping only scales gradients.")
            taken = value["steps"][0]["taken"][0]
            for name, whole in missteps.wanted(case, rank, 0).items():
                want = [number * case.max_norm / norm for number in whole]
                if not close(hm.numbers_of(taken[name]), want, TOLERANCE):
                    got = f"{case} and max_norm {case.max_norm}, on rank {rank} {_how(taken[name], want, name)}"
                    advice = "Print the norm on every rank. One process finds " + f"{norm:.4f}."
                    return Finding(got, "", advice, hybrid_norms.behind_norm(result, case))
    return None


def _again(bench: Bench) -> Finding | None:
    for case in (*EVERY, *CLIPPED):
        result = _run(bench, case)
        if isinstance(result, Finding):
            return result
        for step in range(len(result.values[0]["steps"])):
            after = hm.whole(case.samples, case.max_norm).weights[step]
            for rank, value in enumerate(result.values):
                for name, got in value["steps"][step]["weights"].items():
                    want = hm.flat(hm.shard_of(after[name], name, case, rank))
                    if not close(hm.numbers_of(got), want, TOLERANCE):
                        said = f"{case}, after step {step + 1} the weight `{name}` on rank {rank} is another one"
                        advice = "What else changes a weight, or is left from the step before?"
                        mistake = missteps.behind_update(result, case) if step else None
                        return Finding(said, "", advice, mistake)
    return None


def _alike(bench: Bench) -> Finding | None:
    for case in (*EVERY, *CLIPPED):
        result = _run(bench, case)
        if isinstance(result, Finding):
            return result
        for rank, value in enumerate(result.values):
            for name, got in value["steps"][-1]["weights"].items():
                first = missteps.holders(case, rank, name)[0]
                if result.values[first]["steps"][-1]["weights"][name] != got:
                    said = f"{case}, `{name}` has other numbers on rank {rank} than on rank {first}"
                    return Finding(said, "", "Add in the same order on every rank, or let one call add for all.")
    return None


# --- the loss, what is sent -------------------------------------------------------------------------------------------


def _loss(bench: Bench) -> Finding | None:
    for case in sorted(SMALL, key=lambda case: case not in UNEVEN):  # unequal parts tell more mistakes apart
        result = _run(bench, case)
        if isinstance(result, Finding):
            return result
        want = hm.whole(case.samples, case.max_norm).losses[0]
        for rank, value in enumerate(result.values):
            returned = value["steps"][0]["returned"]
            number = real_number(returned)
            if number is None or not math.isclose(number, want, rel_tol=TOLERANCE):
                said = type_in_words(returned) if number is None else f"{number:.5g}"
                mistake = missteps.behind_loss(result, case)
                return Finding(
                    f"{case}, rank {rank} returned {said}", f"{want:.5g}", "Whose losses are in it?", mistake
                )
    return None


def _sent(bench: Bench) -> Finding | None:
    for case in EVERY:
        result = _run(bench, case)
        if isinstance(result, Finding):
            return result
        nbytes, need = _own_bytes(result), hm.STEPS * sum(_needed(case, rank) for rank in range(case.n))
        if nbytes > 1.01 * need + hm.STEPS * SLACK * case.n * (case.n > 1):
            times = f"{nbytes / need:.2f} times the bytes travel" if need else f"{nbytes} bytes travel"
            return Finding(f"{case}, right, but {times}", f"{need:,.0f} bytes", "", known.HYBRID_SENT_TWICE)
    return None


def _needed(case: Mesh, rank: int) -> float:
    """Bytes of this rank's share of the all-reduces of one step: 2(n-1)/n of each tensor, in each group of n."""
    total = 0.0
    for name, numbers in missteps.wanted(case, rank, 0).items():
        sizes = [len(case.ranks(rank, (axis,))) for axis in missteps.RIGHT.axes(name)]
        total += sum(2 * (n - 1) / n * 4 * len(numbers) for n in sizes)
    return total


def _own_bytes(result: Result) -> float:
    """Bytes that the learner's code sent: all calls but those inside of `forward_backward`."""
    spans = []
    for span in result.trace.spans:
        value = result.values[span.rank]
        inside = [note["calls"] for step in value["steps"] for note in step["passes"]]
        begin, end = value["calls"]
        if begin <= span.order < end and not any(a <= span.order < b for a, b in inside):
            spans.append(span)
    trace = replace(result.trace, spans=tuple(spans), messages=())
    sends = sum(span.nbytes for span in spans if span.kind == "send")
    return sum(total_bytes(bytes_sent(trace, backend="any"), trace.world_size)) + sends


PARTS, GRADIENTS = "each copy trains on its part of the batch", "the gradients of one process"

CHECKS = {
    "hybrid_step": (
        Check(PARTS, 2, _data, "one call of `forward_backward`, with the part of this rank's index along dp"),
        Check(GRADIENTS, 5, lambda bench: _gradients(bench, EVEN), "on each rank, its part of them", needs=PARTS),
        Check("uneven parts too", 2, lambda bench: _gradients(bench, UNEVEN), "the mean over all samples",
              needs=GRADIENTS),
        Check("the norm of the whole gradient is clipped", 3, _clipped, "all gradients times one factor",
              needs=GRADIENTS),
        Check("the weights of one process, after two steps", 2, _again, "its weights, to rounding", needs=GRADIENTS),
        Check("the mean loss, on every rank", 2, _loss, "the mean loss over the whole batch", needs=PARTS),
        Check("what is held in common is equal to the bit", 1, _alike, "the same bits", needs=GRADIENTS),
        Check("each gradient is sent once in each group that needs it", 1, _sent, "", needs=GRADIENTS),
    )
}  # fmt: skip
