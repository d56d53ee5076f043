"""Checks of `broadcast_parameters`: parameters and buffers of all ranks become those of one, in place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from course.grading.bench import Bench, Result, Seat, Trouble
from course.grading.check import Check, Finding
from course.grading.checks.averaging import stopped_by_order
from course.grading.checks.hello import lazy
from course.grading.mistakes import Mistake
from course.grading.mistakes.lesson_05 import (
    AVERAGED_START,
    BUFFERS_FORGOTTEN,
    COPY_RECEIVED,
    FROZEN_SKIPPED,
    NEW_PARAMETERS,
    NOT_ALL_CALL,
    NOTHING_SENT,
    ORDER_DIFFERS,
    SRC_IGNORED,
    SUMMED_START,
)
from course.grading.plain import TensorData, plain, same, type_in_words

SIZES = (3, 4, 1, 2)
FROZEN = "frozen.weight"
State = dict[str, Any]


def module(rank: int) -> Any:
    """Rank `rank`'s module: linear layers, one frozen, and a BatchNorm that has seen some data."""
    import torch
    from torch import nn

    generator = torch.Generator().manual_seed(40 + rank)
    layers = nn.ModuleDict(
        {
            "first": nn.Linear(80, 60),
            "norm": nn.BatchNorm1d(60),
            "frozen": nn.Linear(60, 3, bias=False),
            "last": nn.Linear(3, 2),
        }
    )
    with torch.no_grad():
        for tensor in [*layers.parameters(), *layers.buffers()]:
            if tensor.is_floating_point():
                tensor.copy_(torch.randn(tensor.shape, generator=generator))
            else:
                tensor.fill_(10 + rank)
        for parameter in layers.parameters():
            parameter.grad = torch.randn(parameter.shape, generator=generator)
    layers["frozen"].requires_grad_(False)
    layers["frozen"].weight.grad = None
    return layers


def state(held: Any) -> State:
    """Parameters and buffers by name, in plain data."""
    return {name: plain(t) for name, t in [*held.named_parameters(), *held.named_buffers()]}


def _probe(learner: Any, src: int | None, seat: Seat) -> Any:
    held = module(seat.rank)
    objects = dict(held.named_parameters())
    gradients = {name: plain(parameter.grad) for name, parameter in objects.items()}
    returned = plain(learner(held) if src is None else learner(held, src))
    now = dict(held.named_parameters())
    return {
        "returned": returned,
        "state": state(held),
        "replaced": [name for name, old in objects.items() if now.get(name) is not old],
        "gradients": [name for name in now if plain(now[name].grad) != gradients.get(name)],
        "requires": [name for name in now if now[name].requires_grad == (name == FROZEN)],
        "buffers": [name for name, _ in held.named_buffers()],
    }


def _states(n: int) -> list[State]:
    return [state(module(rank)) for rank in range(n)]


def _off(result: Result, want: State, names: Sequence[str]) -> tuple[int, str] | None:
    """The first rank and name whose tensor is not, to the bit, the one wanted."""
    for rank, value in enumerate(result.values):
        for name in names:
            if value["state"].get(name) != want[name]:
                return rank, name
    return None


def _finding(bench: Bench, result: Result, src: int, names: Sequence[str], what: str) -> Finding | None:
    returned = result.values[0]["returned"]
    if mistake := lazy(returned):
        return Finding(f"{what}, it returned {type_in_words(returned)}", "", "", mistake)
    states = _states(result.world_size)
    off = _off(result, states[src], names)
    if off is None:
        return None
    rank, name = off
    now, before = result.values[rank]["state"].get(name), states[rank][name]
    how = "is unchanged" if now == before else f"is not rank {src}'s"
    if type(now) is not TensorData or now.shape != before.shape or now.dtype != before.dtype:
        how = f"is now {type_in_words(now)}"
    got = f"{what}, `{name}` on rank {rank} {how}"
    return Finding(got, "", "Look at one tensor on both ranks, before and after.", _mistake(result, states, src, names))


def _mistake(result: Result, states: list[State], src: int, names: Sequence[str]) -> Mistake | None:
    n = result.world_size
    found = [value["state"] for value in result.values]
    if not result.calls(0):
        return NOTHING_SENT if n > 1 else None
    if src != 0 and _off(result, states[0], names) is None:
        return SRC_IGNORED
    wrong = {name for name in names for state in found if state.get(name) != states[src][name]}
    if found == states:
        return COPY_RECEIVED
    if wrong == {FROZEN} and found[-1 if src == 0 else 0][FROZEN] == states[-1 if src == 0 else 0][FROZEN]:
        return FROZEN_SKIPPED
    if all(_scaled(found, states, name, 1 / n) for name in wrong):
        return AVERAGED_START
    return SUMMED_START if all(_scaled(found, states, name, 1.0) for name in wrong) else None


def _scaled(found: list[State], states: list[State], name: str, factor: float) -> bool:
    """Whether every rank holds `factor` times the sum over the ranks."""
    want = [factor * sum(column) for column in zip(*(state[name].numbers for state in states), strict=True)]
    return all(type(f.get(name)) is TensorData and same({"": f[name].numbers}, {"": want}) for f in found)


def _names(n: int, buffers: bool) -> list[str]:
    states = _states(1)[0]
    ours = [name for name in states if name.startswith("norm.running") or name.endswith("tracked")]
    return ours if buffers else [name for name in states if name not in ours]


def _parameters(bench: Bench) -> Finding | None:
    for n in SIZES:
        what = f"with {n} rank{'s' if n > 1 else ''}"
        try:
            result = bench.run(_probe, None, n=n)
        except Trouble as trouble:
            if not stopped_by_order(trouble):
                raise
            mistake = NOT_ALL_CALL if trouble.kind == "stalled" else ORDER_DIFFERS
            return Finding(trouble.got, "", "", mistake)
        if finding := _finding(bench, result, 0, _names(n, buffers=False), what):
            return finding
    return None


def _buffers(bench: Bench) -> Finding | None:
    for n in SIZES:
        result = bench.run(_probe, None, n=n)
        if finding := _finding(bench, result, 0, _names(n, buffers=True), f"with {n} ranks"):
            states = _states(n)
            names = _names(n, buffers=True)
            kept = all(v["state"].get(k) == s[k] for v, s in zip(result.values, states, strict=True) for k in names)
            return Finding(finding.got, "", finding.advice, BUFFERS_FORGOTTEN if kept else finding.mistake)
    return None


def _source(bench: Bench) -> Finding | None:
    for n, src in ((2, 1), (3, 1), (4, 3)):
        result = bench.run(_probe, src, n=n)
        if finding := _finding(bench, result, src, _names(n, buffers=False), f"with {n} ranks and src={src}"):
            return finding
    return None


def _objects(bench: Bench) -> Finding | None:
    for n in (3, 2):
        for rank, value in enumerate(bench.run(_probe, None, n=n).values):
            what = f"with {n} ranks, on rank {rank}"
            if value["replaced"]:
                return Finding(f"{what} `{value['replaced'][0]}` is another object than before", "", "", NEW_PARAMETERS)
            if value["gradients"]:
                return Finding(
                    f"{what} the gradient of `{value['gradients'][0]}` was changed", "", "Leave `.grad` alone."
                )
            if value["requires"]:
                return Finding(f"{what} `{value['requires'][0]}` has another `requires_grad` than before", "", "")
    return None


def _cost(bench: Bench) -> Finding | None:
    once = sum(_nbytes(tensor) for tensor in _states(1)[0].values())
    for n in (3, 4):
        nbytes = bench.run(_probe, None, n=n).nbytes
        if nbytes > (n - 1) * (1.1 * once + 5000):
            got = f"with {n} ranks, correct, but {nbytes / ((n - 1) * once):.2f} times the bytes travel"
            advice = "Copying needs no sum, and only one rank has anything to say."
            return Finding(got, f"{(n - 1) * once} bytes over all ranks", advice)
    return None


def _nbytes(tensor: TensorData) -> int:
    return len(tensor.numbers) * (8 if tensor.dtype.endswith("64") else 4)


PARAMETERS = "every parameter is rank 0's, to the bit"

CHECKS = {
    "broadcast_parameters": (
        Check(PARAMETERS, 2, _parameters, "rank 0's numbers in all parameters of all ranks"),
        Check("every buffer too", 2, _buffers, "rank 0's numbers in all buffers of all ranks", needs=PARAMETERS),
        Check("from any rank `src`", 1, _source, "rank `src`'s numbers", needs=PARAMETERS),
        Check("same objects, same gradients", 1, _objects, "the same parameters as before", needs=PARAMETERS),
        Check("each number is sent once", 1, _cost, "each number once to each rank", needs=PARAMETERS),
    )
}
