"""Pipeline schedules as data: for each stage, the list of what it does, in order.

    one_f_one_b(stages=2, microbatches=3)[1]  ->  (F0, B0, F1, B1, F2, B2)

Pure functions to tuples that anyone can print. Nothing runs here: one executor runs any of them on ranks, the simulator
prices them, the widget draws them. Times, bytes and messages are not known here. Standard library only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from course.errors import UsageError


class Action(NamedTuple):
    """One thing a stage does. kind: "F" forward, "B" backward, "W" backward of the weights alone.

    Where a stage's list has a W for a microbatch, its B is the backward of the input alone, and is what the stage
    before it waits for; elsewhere B is the whole backward. `chunk`: which of the rank's pieces of the model, from 0:
    with p ranks, chunk c of rank r is piece c * p + r of the model. Printed as F3, or F3.1 in chunk 1.
    """

    kind: Literal["F", "B", "W"]
    microbatch: int
    chunk: int = 0

    def __repr__(self) -> str:
        return f"{self.kind}{self.microbatch}" + (f".{self.chunk}" if self.chunk else "")


Actions = tuple[Action, ...]  # of one stage, or of one rank that holds several chunks
Schedule = tuple[Actions, ...]


def gpipe_schedule(stages: int, microbatches: int) -> Schedule:
    """All forwards, then all backwards, on every stage (Huang et al. 2019). Holds all m microbatches at once."""
    _check("gpipe_schedule", stages, microbatches)
    forwards = tuple(Action("F", k) for k in range(microbatches))
    backwards = tuple(Action("B", k) for k in range(microbatches))
    return ((*forwards, *backwards),) * stages


def one_f_one_b(stages: int, microbatches: int) -> Schedule:
    """min(m, p-1-s) forwards on stage s, then one forward and one backward in turn, then the backwards that are left.

    The bubble of GPipe, but stage s holds at most min(m, p-s) microbatches (PipeDream-Flush, Narayanan et al. 2021).
    """
    _check("one_f_one_b", stages, microbatches)
    return tuple(_one_f_one_b(min(microbatches, stages - 1 - stage), microbatches) for stage in range(stages))


def _one_f_one_b(warm_up: int, microbatches: int) -> Actions:
    actions = [Action("F", k) for k in range(warm_up)]
    for k in range(warm_up, microbatches):
        actions += [Action("F", k), Action("B", k - warm_up)]
    actions += [Action("B", k) for k in range(microbatches - warm_up, microbatches)]
    return tuple(actions)


def interleaved_1f1b(stages: int, microbatches: int, chunks: int) -> Schedule:
    """1F1B where each of p ranks holds `chunks` pieces of the model: the bubble is `chunks` times shorter.

    Microbatches go through a rank's chunks in rounds of equal size, of p where m is divisible by p (Narayanan et al.
    2021, section 2.2, with its order of warm-up). Raises UsageError where rounds of p or more do not divide m.
    """
    _check("interleaved_1f1b", stages, microbatches, chunks)
    rounds = max(1, microbatches // stages)
    if microbatches % rounds:
        raise UsageError(
            f"interleaved_1f1b(stages={stages}, microbatches={microbatches}): microbatches must be divisible by "
            f"stages; try {max(1, round(microbatches / stages)) * stages}"
        )
    return tuple(_interleaved(rank, stages, microbatches, chunks, microbatches // rounds) for rank in range(stages))


def _interleaved(rank: int, stages: int, microbatches: int, chunks: int, size: int) -> Actions:
    """`size`: microbatches a round."""
    total = microbatches * chunks
    warm_up = min(total, (chunks - 1) * size + 2 * (stages - 1 - rank))

    def forward(k: int) -> Action:
        return Action("F", k // (size * chunks) * size + k % size, k // size % chunks)

    def backward(k: int) -> Action:
        return Action("B", k // (size * chunks) * size + k % size, chunks - 1 - k // size % chunks)

    actions = [forward(k) for k in range(warm_up)]
    for k in range(warm_up, total):
        actions += [forward(k), backward(k - warm_up)]
    actions += [backward(k) for k in range(total - warm_up, total)]
    return tuple(actions)


def zero_bubble_h1(stages: int, microbatches: int) -> Schedule:
    """1F1B with the backward in two: B hands the gradient of the input on at once, W fills what was bubble.

    Stage s begins with its W's after s rounds, so it holds no more than 1F1B's first stage does. (ZB-H1, Qi et al.
    2023, section 4.2: idle time falls from (p-1)(F+B+W) to (p-1)(F+B-W).)
    """
    _check("zero_bubble_h1", stages, microbatches)
    return tuple(_zero_bubble(stage, stages, microbatches) for stage in range(stages))


def _zero_bubble(stage: int, stages: int, microbatches: int) -> Actions:
    warm_up = min(microbatches, stages - 1 - stage)
    actions = [Action("F", k) for k in range(warm_up)]
    weights = 0
    for k in range(microbatches):  # B number k, each but the last `warm_up` behind a forward
        if warm_up + k < microbatches:
            actions.append(Action("F", warm_up + k))
        actions.append(Action("B", k))
        if k >= stage:
            actions.append(Action("W", weights))
            weights += 1
    actions += [Action("W", k) for k in range(weights, microbatches)]
    return tuple(actions)


def bubble_fraction(stages: int, microbatches: int, chunks: int = 1) -> float:
    """The idle share of the whole step, (p-1) / (v m + p-1), for equal stages and free messages.

    Of GPipe and 1F1B, and with `chunks` v of the interleaved schedule. Papers often give the idle share of the *ideal*
    time instead, (p-1) / (v m).
    """
    _check("bubble_fraction", stages, microbatches, chunks)
    return (stages - 1) / (chunks * microbatches + stages - 1)


def peak_activations(actions: Iterable[Action]) -> int:
    """The most microbatches (of any chunk) whose activations a stage holds at once, if it does `actions` in order.

    Held from F on, until B; where the list has W's, until W, which still needs them.
    """
    actions = list(actions)
    last = "W" if any(action.kind == "W" for action in actions) else "B"
    held = most = 0
    for action in actions:
        held += (action.kind == "F") - (action.kind == last)
        most = max(most, held)
    return most


def parse_actions(text: str) -> Actions:
    """("F0 F1 B0.1") -> (F0, F1, B0.1). Raises UsageError that names the word which is no action."""
    return tuple(_parse(word) for word in text.split())


def _parse(word: str) -> Action:
    number, _, chunk = word[1:].partition(".")
    kinds: dict[str, Literal["F", "B", "W"]] = {"F": "F", "B": "B", "W": "W"}
    if word[0] not in kinds or not number.isdigit() or not (chunk or "0").isdigit():
        raise UsageError(f"parse_actions: {word!r} is no action; one is F3, B0 or W12, or F3.1 in chunk 1")
    return Action(kinds[word[0]], int(number), int(chunk or 0))


def as_schedule(lists: Sequence[Sequence[object]]) -> Schedule:
    """A schedule from lists of Actions, of ("F", 0) pairs or of words like "F0"; a Schedule comes back as it is."""
    return tuple(tuple(_as_action(item) for item in actions) for actions in lists)


def _as_action(item: object) -> Action:
    if isinstance(item, Action):
        return item
    if isinstance(item, str):
        return _parse(item)
    if isinstance(item, Sequence) and len(item) in (2, 3) and item[0] in ("F", "B", "W"):
        return Action(item[0], int(item[1]), int(item[2]) if len(item) == 3 else 0)
    raise UsageError(f"a schedule holds actions like F0 or ('B', 3), but has {item!r}")


def _check(name: str, stages: int, microbatches: int, chunks: int = 1) -> None:
    for what, number in (("stages", stages), ("microbatches", microbatches), ("chunks", chunks)):
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            raise UsageError(f"{name}({what}={number!r}): {what} must be a whole number of at least 1")
