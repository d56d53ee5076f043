"""What the exercises on messages between ranks share: numbers that differ per rank, and how what came back is judged.

What each exercise asks stands in `scattering`, `gathering`, `reducing`, `shift` and `tree`; what travels in `traffic`.
"""

from __future__ import annotations

import math
import random
import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from course.grading.bench import Bench, Probe, Result, Trouble
from course.grading.check import Finding
from course.grading.checks.hello import lazy
from course.grading.mistakes import Mistake
from course.grading.mistakes.any_exercise import PRINTED
from course.grading.mistakes.lesson_03 import (
    ALL_RECEIVE_FIRST,
    ALL_SEND_FIRST,
    BUFFER_DTYPE,
    BUFFER_SIZE,
    CHANGED_UNDER_WAY,
    IN_FLOAT32,
    NO_MESSAGE,
    SENDS_TO_ITSELF,
    UNWAITED,
)
from course.grading.plain import TensorData, type_in_words

Case = tuple[str, tuple[int, ...]]  # which numbers ("floats", "doubles", "digits"), in which shape

_DTYPES = {"floats": "float32", "doubles": "float64", "digits": "int64"}
_TOLERANCE = {"float32": 1e-5, "float64": 1e-13}
BASE = 1000  # of the digits test: up to five ranks' digits in an int64, no sum carries
EVEN: Case = ("floats", (4, 6))  # 24 elements: 1, 2, 3 and 4 ranks divide it
DIGITS: Case = ("digits", (4, 6))
DOUBLES: Case = ("doubles", (5, 7))
UNEVEN: tuple[tuple[int, Case], ...] = ((4, ("floats", (5, 7))), (4, ("floats", (10,))), (3, ("floats", (10,))),
                                        (5, ("floats", (13,))), (2, ("floats", (9,))))  # fmt: skip
FEW: tuple[tuple[int, Case], ...] = tuple((n, ("floats", (k,))) for n, k in ((3, 2), (3, 1), (4, 2), (4, 0)))
LARGE: Case = ("floats", (4003,))  # where chunks are large beside what a message may carry besides


# --- what each rank is given ------------------------------------------------------------------------------------------


def given(case: Case, rank: int, n: int) -> TensorData:
    """Rank `rank`'s tensor of n. Other numbers for each case and n, so that nothing of an earlier run fits again."""
    kind, shape = case
    source = random.Random(f"{case}, rank {rank} of {n}")
    size = math.prod(shape)
    numbers: tuple[float | int, ...]
    if kind == "digits":
        numbers = tuple(digit(k) * BASE**rank for k in range(size))
    else:
        numbers = tuple(source.gauss(0.3, 1.0) for _ in range(size))
    if kind == "floats":
        numbers = tuple(struct.unpack("f", struct.pack("f", number))[0] for number in numbers)
    return TensorData(_DTYPES[kind], shape, "cpu", numbers)


def digit(k: int) -> int:
    """What each rank brings to place k of a digits test, times its own power of BASE: 1 to 9."""
    return (7 * k + 3) % 9 + 1


def tensor(data: TensorData) -> Any:
    """Runs in the rank: the tensor with these numbers."""
    import torch

    return torch.tensor(data.numbers, dtype=getattr(torch, data.dtype)).reshape(data.shape)


def spoil_memory(nbytes: int) -> None:
    """Runs in the rank: leaves no right number of an earlier run in memory that `torch.empty` may hand out next."""
    import torch

    sizes = {nbytes // 4 * 4 // k // 8 * 8 + extra for k in range(1, 6) for extra in (0, 4, 8)}
    held = [torch.full((size,), 255, dtype=torch.uint8) for size in sizes for _ in range(4)]
    del held


def cuts(numel: int, n: int) -> list[tuple[int, int]]:
    """(start, stop) of each chunk, as torch.tensor_split cuts."""
    size, bigger = divmod(numel, n)
    starts = [rank * size + min(rank, bigger) for rank in range(n + 1)]
    return list(zip(starts, starts[1:], strict=False))


def sum_of(parts: Sequence[TensorData]) -> TensorData:
    """The sum over ranks, in the shape of the parts."""
    first = parts[0]
    total = tuple(math.fsum(column) for column in zip(*(part.numbers for part in parts), strict=True))
    if first.dtype == "int64":
        total = tuple(int(number) for number in total)
    return TensorData(first.dtype, first.shape, first.device, total)


def flat(data: TensorData, start: int = 0, stop: int | None = None) -> TensorData:
    """A piece of it, flat."""
    numbers = data.numbers[start:stop]
    return TensorData(data.dtype, (len(numbers),), data.device, numbers)


# --- running, and what came back --------------------------------------------------------------------------------------


def run(bench: Bench, probe: Probe, case: Any, n: int) -> Result | Finding:
    """The result of a probe, or a finding where it stopped in a way that has a name. Raises Trouble for the others."""
    try:
        return bench.run(probe, case, n=n)
    except Trouble as trouble:
        mistake = _named(trouble, n)
        if mistake is None:
            raise
        got = "with 1 rank, it sends a message to itself" if mistake is SENDS_TO_ITSELF else trouble.got
        return Finding(got, "", "", mistake)


# What torch says to `send` and `recv`, and gloo to `isend` and `irecv`.
_TO_ITSELF = ("same as the rank of the current process", "Pair is not connected")


def _named(trouble: Trouble, n: int) -> Mistake | None:
    if trouble.kind == "stalled" and "all send first" in trouble.got:
        return ALL_SEND_FIRST
    if trouble.kind == "stalled" and "all receive first" in trouble.got:
        return ALL_RECEIVE_FIRST
    if trouble.kind == "raised" and n == 1 and any(words in trouble.got for words in _TO_ITSELF):
        return SENDS_TO_ITSELF
    sides = re.findall(r"rank \d+ has \([\d, ]*\) (\w+)", trouble.got)
    if trouble.kind == "raised" and len(sides) == 2 and "as many elements" in trouble.got:
        return BUFFER_DTYPE if sides[0] != sides[1] else BUFFER_SIZE
    return None


def agrees(got: Any, want: TensorData, *, shape: bool = True) -> bool:
    """Whether it is a tensor of that dtype, shape and those numbers (floats: to rounding of another order)."""
    if type(got) is not TensorData or got.dtype != want.dtype or (shape and got.shape != want.shape):
        return False
    return close(got.numbers, want.numbers, _TOLERANCE.get(want.dtype, 0.0))


def close(got: Sequence[float], want: Sequence[float], tolerance: float) -> bool:
    """Whether numbers agree, to `tolerance` of the largest of them."""
    if len(got) != len(want):
        return False
    scale = max((abs(number) for number in want), default=0.0)
    return all(abs(mine - other) <= tolerance * scale for mine, other in zip(got, want, strict=True))


@dataclass(frozen=True, slots=True)
class Question:
    """One comparison: what each rank came back with, what was wanted of it, and the case in words.

    `noun`: what is compared, "the result" or "`t`"; `returned`: what an answer that works in place came back with.
    """

    result: Result
    found: Sequence[Any]
    wants: Sequence[TensorData]
    what: str
    noun: str = "the result"
    returned: Any = None


def compare(asked: Question, recognise: Callable[[], Mistake | None], say: Callable[[int], str]) -> Finding | None:
    """A finding where a rank has something else than was wanted; `say(rank)` tells how its numbers differ."""
    for rank, (got, want) in enumerate(zip(asked.found, asked.wants, strict=True)):
        if agrees(got, want):
            continue
        if mistake := lazy(asked.returned):
            return Finding(f"{asked.what}, it returned {type_in_words(asked.returned)}", "", "", mistake)
        text = f"{asked.what}, {asked.noun} on rank {rank} is "
        if type(got) is not TensorData:
            printed = PRINTED if got is None and any(asked.result.output) else None
            return Finding(text + type_in_words(got), "", "Return a tensor.", lazy(got) or printed or recognise())
        if got.dtype != want.dtype:
            in_float = IN_FLOAT32 if got.dtype == "float32" else None
            return Finding(text + f"{got.dtype} where {want.dtype} came in", "", "Keep the dtype.", in_float)
        if got.shape != want.shape:
            said = f"of shape {got.shape} instead of {want.shape}"
            return Finding(text + said, "", "Look at `shape` before and after.", _idle(asked) or recognise())
        advice = "Follow one element through every step, on paper, for three ranks."
        return Finding(text + say(rank), "", advice, _idle(asked) or recognise())
    return None


def _idle(asked: Question) -> Mistake | None:
    """The mistake where a handle was left alone, a message changed under way, or no call was made at all."""
    result = asked.result
    if left_handles(result):
        return UNWAITED
    if changed_early(result):
        return CHANGED_UNDER_WAY
    silent = result.world_size > 1 and not any(result.calls(rank) for rank in range(result.world_size))
    return NO_MESSAGE if silent else None


def left_handles(result: Result) -> list[str]:
    """The kinds of call ("isend") whose handle nobody waited for."""
    found = (re.match(r"the handle from (\S+) at .* was never waited for", note) for note in result.notes)
    return sorted({match[1] for match in found if match})


def changed_early(result: Result) -> bool:
    """Whether a tensor was changed between its isend and the wait. Seen where it is no part of a larger one."""
    return any("was changed before its wait()" in note for note in result.notes)


def one_wrong(got: TensorData, want: TensorData, start: int = 0) -> str:
    """One element that is wrong, for a sentence; `start`: the place of the first one in the whole tensor."""
    for k, (mine, other) in enumerate(zip(got.numbers, want.numbers, strict=True)):
        if not abs(mine - other) <= _TOLERANCE.get(want.dtype, 0.0) * max(map(abs, want.numbers)):
            return f"wrong: element {start + k} is {_short(mine)} where {_short(other)} was expected"
    return "wrong"


def _short(number: float) -> str:
    return str(number) if type(number) is int else ("not a number" if math.isnan(number) else f"{number:.4g}")


# --- checks that several exercises make -------------------------------------------------------------------------------


def exact(finding: Finding | None, pairs: Sequence[tuple[Any, TensorData]]) -> Finding | None:
    """The same finding, named where numbers are right to float32 only."""
    if finding is None or finding.mistake is not None:
        return finding
    if all(type(got) is TensorData and close(got.numbers, want.numbers, 1e-6) for got, want in pairs):
        return Finding(finding.got, "", "", IN_FLOAT32)
    return finding


def waited(results: Sequence[Result]) -> Finding | None:
    """A finding where a handle was left alone, or waited for too late."""
    for result in results:
        if changed_early(result):
            got = f"with {result.world_size} ranks, a tensor was changed between its isend and the wait()"
            return Finding(got, "", "", CHANGED_UNDER_WAY)
        for kind in left_handles(result):
            got = f"with {result.world_size} ranks, a handle from {kind} was never waited for"
            return Finding(got, "", "", UNWAITED)
    return None


def untouched(results: Sequence[Result], name: str, mistake: Mistake) -> Finding | None:
    """A finding where a probe noted that the input was changed."""
    for result in results:
        for rank, value in enumerate(result.values):
            if value["changed"]:
                return Finding(f"with {result.world_size} ranks, `{name}` was changed on rank {rank}", "", "", mistake)
    return None
