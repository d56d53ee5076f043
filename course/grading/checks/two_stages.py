"""Checks of `two_stage_loop`: all frames, both stages at once, a bounded queue, errors that come out, nobody left.

Overlap and bounds are judged by the order of events, never by a clock. The runs stand in `watched_loop`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from course.grading.bench import Bench, Seat, Trouble
from course.grading.check import Check, Finding
from course.grading.checks import watched_loop as loop
from course.grading.checks.alone import asked, raised
from course.grading.checks.hello import lazy
from course.grading.mistakes import Mistake
from course.grading.mistakes.any_exercise import NOT_REFUSED, OTHER_ERROR
from course.grading.mistakes.lesson_02 import (
    ALL_MADE_FIRST,
    DEPTH_IGNORED,
    DEPTH_OFF,
    ERROR_CHANGED,
    ERROR_LOST,
    FRAME_TAKEN_FOR_THE_END,
    FRAMES_RETURNED,
    GOES_ON_AFTER_ERROR,
    HANGS_ON_ERROR,
    IN_TURN,
    LATER_ERROR_WINS,
    NEVER_COMES_BACK,
    OUT_OF_ORDER,
    QUEUE_UNBOUNDED,
    SEVERAL_AT_ONCE,
    THREAD_LEFT,
)
from course.grading.plain import type_in_words

CASES: tuple[tuple[int, int | None], ...] = ((7, None), (40, 3), (1, 1), (0, 2))
DEPTHS = (1, 4)
IMPOSSIBLE = ((-1, 2), (5, 0), (5, -1))
SLACK = 4  # frames that may be begun while the news of an error spreads


def _probe(learner: Any, case: tuple[Any, ...], seat: Seat) -> Any:
    """`watched_loop.<case[0]>(learner, ...)`."""
    return getattr(loop, case[0])(learner, *case[1:])


def _seen(bench: Bench, *case: Any) -> Any:
    return bench.run(_probe, case, n=1).values[0]


def _hung(what: str, mistake: Mistake) -> Finding:
    return Finding(f"{what} the call had not returned when its time was up", "", "", mistake)


# --- every frame ------------------------------------------------------------------------------------------------------


def _order(bench: Bench) -> Finding | None:
    for frames, depth in CASES:
        seen = asked(bench, _probe, ("all_frames", frames, depth))
        what = f"with frames={frames}" + ("" if depth is None else f", depth={depth}")
        if isinstance(seen, Trouble):
            return Finding(f"{what} {raised(seen)}", "", seen.advice)
        if finding := _one_run(seen, frames, what):
            return finding
    return None


def _one_run(seen: dict[str, Any], frames: int, what: str) -> Finding | None:
    all_frames = list(range(frames))
    if seen["end"] == "hung":
        return _hung(what, NEVER_COMES_BACK)
    if seen["value"] == [("result", k) for k in all_frames] and seen["produce"] == seen["consume"] == all_frames:
        return None
    for stage in ("produce", "consume"):
        if seen[stage] != all_frames:
            said = f"{what}, {stage} was called for {_listed(seen[stage])}"
            mistake = OUT_OF_ORDER if sorted(seen[stage], key=str) == sorted(all_frames, key=str) else None
            return Finding(said, "", "One call a frame, in order.", mistake or lazy(seen["value"]))
    if type(seen["value"]) is not list:
        got = f"{what} {type_in_words(seen['value'])} came back"
        return Finding(got, "", "Return the results in a list.", lazy(seen["value"]))
    return Finding(f"{what} other results came back", "", "Keep what consume returns.", _of_results(seen, frames))


def _of_results(seen: dict[str, Any], frames: int) -> Mistake | None:
    if seen["value"] == [("frame", k) for k in range(frames)]:
        return FRAMES_RETURNED
    results = [("result", k) for k in range(frames)]
    return OUT_OF_ORDER if sorted(map(str, seen["value"])) == sorted(map(str, results)) else None


def _listed(items: Sequence[Any]) -> str:
    if not items:
        return "no frame"
    return ", ".join(map(str, items[:8])) + (f", ... ({len(items)} in all)" if len(items) > 8 else "")


def _objects(bench: Bench) -> Finding | None:
    seen = _seen(bench, "odd_objects")
    count = len(seen["kinds"])
    wanted = [None if k in loop.WITHOUT_RESULT else k for k in range(count)]
    if seen["end"] == "returned" and seen["value"] == wanted:
        return None
    if seen["end"] == "returned" and seen["places"] == list(range(count)):
        return Finding("every frame was consumed, but other results came back", "", "A result may be None too.")
    last = seen["kinds"][min(len(seen["places"]), count - 1)]
    end = {"hung": "it never came back", "returned": "it returned"}.get(seen["end"]) or f"it raised {seen['said']}"
    got = f"{len(seen['places'])} of {count} frames were consumed, then {end} (the next was of type {last})"
    return Finding(got, "", "", FRAME_TAKEN_FOR_THE_END)


# --- side by side -----------------------------------------------------------------------------------------------------


def _overlap(bench: Bench) -> Finding | None:
    for depth in DEPTHS:
        seen = _seen(bench, "run_ahead", depth)
        what = f"with depth={depth},"
        if seen["end"] == "hung":
            return _hung(what, NEVER_COMES_BACK)
        for stage in ("produce", "consume"):
            if seen["most"][stage] > 1:
                got = f"{what} {stage} was called for a frame while it worked on another"
                return Finding(got, "", "", SEVERAL_AT_ONCE)
        if seen["late"]:
            return Finding(f"{what} frame {depth + 2} was begun before frame 0 was consumed", "", "", ALL_MADE_FIRST)
        if seen["ahead"] == 1:
            return Finding(f"{what} no frame was begun while frame 0 was consumed", "", "", IN_TURN)
    return None


def _depth(bench: Bench) -> Finding | None:
    ahead = [_seen(bench, "run_ahead", depth)["ahead"] for depth in DEPTHS]
    for depth, begun in zip(DEPTHS, ahead, strict=True):
        if depth + 1 <= begun <= depth + 2:
            continue
        if begun == loop.FRAMES:
            mistake = QUEUE_UNBOUNDED
        else:
            mistake = DEPTH_IGNORED if len(set(ahead)) == 1 else DEPTH_OFF
        got = f"with depth={depth}, {begun} of {loop.FRAMES} frames were begun before frame 0 had been consumed"
        return Finding(got, f"{depth + 1} or {depth + 2}", "", mistake)
    return None


# --- errors -----------------------------------------------------------------------------------------------------------

_FAILURES = (
    (("failing_consume",), f"consume raised at frame {loop.FAILS}"),
    (("failing_produce", loop.FAILS), f"produce raised at frame {loop.FAILS}"),
    (("failing_produce", 0), "produce raised at frame 0"),
)


def _errors(bench: Bench) -> Finding | None:
    for case, what in _FAILURES:
        seen = _seen(bench, *case)
        if seen["end"] == "hung":
            return _hung(f"{what}, and", HANGS_ON_ERROR)
        if seen["end"] == "returned":
            return Finding(f"{what}, and {type_in_words(seen['value'])} came back", "", "", ERROR_LOST)
        if seen["end"] == "changed":
            return Finding(f"{what}, and what came out was {seen['said']}", "", "", ERROR_CHANGED)
    return None


def _first(bench: Bench) -> Finding | None:
    seen = _seen(bench, "failing_both")
    what = "consume raised, then produce did, and"
    if seen["end"] == "hung":
        return _hung(what, HANGS_ON_ERROR)
    if seen["end"] != "raised":
        return Finding(f"{what} what came out was {seen['said'] or 'nothing'}", "", "", LATER_ERROR_WINS)
    return None


def _stops(bench: Bench) -> Finding | None:
    for case, what in _FAILURES[:2]:
        seen = _seen(bench, *case)
        queued = 2 if case == ("failing_consume",) else 0
        for stage, limit in (("produce", loop.FAILS + 1 + SLACK + queued), ("consume", loop.FAILS + 1 + SLACK)):
            if seen[stage] > limit:
                got = f"{what} of {loop.MANY}, and {stage} was called for {seen[stage]} frames in all"
                return Finding(got, "", "", GOES_ON_AFTER_ERROR)
    return None


def _nobody_left(bench: Bench) -> Finding | None:
    runs = [(("all_frames", 7, None), "after 7 frames"), *((case, f"after {what}") for case, what in _FAILURES)]
    for case, what in runs:
        if left := _seen(bench, *case)["left"]:
            threads = "one thread was" if left == 1 else f"{left} threads were"
            return Finding(f"{what}, {threads} still alive", "", "", THREAD_LEFT)
    return None


def _refuses(bench: Bench) -> Finding | None:
    for frames, depth in IMPOSSIBLE:
        end = _seen(bench, "refusal", frames, depth)["end"]
        call = f"two_stage_loop(produce, consume, {frames}, depth={depth})"
        if end == "ValueError":
            continue
        if end in ("returned", "hung"):
            return Finding(f"{call} {'returned' if end == 'returned' else 'never came back'}", "", "", NOT_REFUSED)
        return Finding(f"{call} raised {end}", "", "", OTHER_ERROR)
    return None


_ALL = "every frame once, results in order"
_BOTH = "both stages work at the same time, each on one frame"
_OUT = "an error in either stage comes out"

CHECKS: dict[str, Sequence[Check]] = {
    "two_stage_loop": (
        Check(_ALL, 2, _order, "one call a frame in each stage, and a list of all results"),
        Check("any object is a frame", 1, _objects, "all frames consumed, whatever they are", needs=_ALL),
        Check(_BOTH, 2, _overlap, "frames made while frame 0 is consumed, one at a time", needs=_ALL),
        Check("`depth` frames wait, and no more", 2, _depth, "a queue of `depth`", needs=_BOTH),
        Check(_OUT, 2, _errors, "the exception that was raised", needs=_ALL),
        Check("the first error comes out", 1, _first, "consume's error", needs=_OUT),
        Check("after an error no more frames are begun", 1, _stops, "both stages stop", needs=_OUT),
        Check("no thread is left", 1, _nobody_left, "as many threads as before", needs=_OUT),
        Check("the impossible is refused", 1, _refuses, "a ValueError", needs=_ALL),
    )
}
