"""Checks of `reshard_state`: shards of k ranks made into those of n, compared with the whole cut at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from course.grading.bench import Bench, Seat
from course.grading.check import Check, Finding
from course.grading.checks.alone import asked, raised
from course.grading.checks.hello import lazy
from course.grading.checks.reshard_cases import COPIES, EVEN, KINDS, UNEVEN, Move, dims_of, guesses, shards_of, want
from course.grading.mistakes import Mistake
from course.grading.mistakes import lesson_09_challenge as known
from course.grading.mistakes.any_exercise import NOT_REFUSED, OTHER_ERROR
from course.grading.plain import TensorData, plain, type_in_words

# --- in the rank ------------------------------------------------------------------------------------------------------


def _probe(learner: Any, moves: tuple[Move, ...], seat: Seat) -> list[Any]:
    return [_moved(learner, move) for move in moves]


def _moved(learner: Any, move: Move) -> dict[str, Any]:
    shards, dims = shards_of(move), dims_of(move)
    given = [dict(shard) for shard in shards]
    before = plain(given)
    made = learner(shards, dims, move.new)
    kept = len(shards) == len(given) and all(
        list(shard) == list(old) and all(shard[name] is old[name] for name in old)
        for shard, old in zip(shards, given, strict=False)
    )
    return {
        "made": plain(made),
        "memory": _memory(made, given),
        "changed": not kept or plain(given) != before or dims != dims_of(move),
    }


def _memory(made: Any, given: Sequence[Mapping[str, Any]]) -> list[tuple[int, str, str]]:
    """(rank, name, what is wrong with its memory) of new tensors: "strides", "view" or "shared"."""
    import torch

    if type(made) not in (list, tuple):
        return []
    seen = {t.untyped_storage().data_ptr() for shard in given for t in shard.values() if t.numel()}
    wrong = []
    for rank, shard in enumerate(made):
        for name, t in shard.items() if type(shard) is dict else ():
            if type(t) is not torch.Tensor:
                continue
            storage = t.untyped_storage()
            if t.numel() and storage.data_ptr() in seen:
                wrong.append((rank, name, "shared"))
            elif storage.nbytes() > t.numel() * t.element_size():
                wrong.append((rank, name, "view"))
            elif not t.is_contiguous():
                wrong.append((rank, name, "strides"))
            seen |= {storage.data_ptr()} if t.numel() and storage.nbytes() == t.numel() * t.element_size() else set()
    return wrong


# --- numbers ----------------------------------------------------------------------------------------------------------


def _numbers(bench: Bench, moves: tuple[Move, ...]) -> Finding | None:
    found = asked(bench, _probe, moves)
    if not isinstance(found, list):
        return Finding(f"{_all(moves)}, {raised(found)}", "", found.advice)
    for move, value in zip(moves, found, strict=True):
        if finding := _form(move, value["made"]):
            return finding
        for rank, shard in enumerate(value["made"]):
            for name in dims_of(move):
                wanted = plain(want(move, name, rank))
                if shard[name] != wanted:
                    said = f"{move} ranks, `{name}` on new rank {rank} is {_how(shard[name], wanted)}"
                    expected = f"{type_in_words(wanted)}, numbers {_listed(wanted)}"
                    advice = "Write down the sizes of this tensor's old and new parts, on paper, before the numbers."
                    return Finding(said, expected, advice, _named(move, value["made"], name))
    return None


def _all(moves: Sequence[Move]) -> str:
    return " or ".join(dict.fromkeys(map(str, moves))) + " ranks"


def _form(move: Move, made: Any) -> Finding | None:
    """What is wrong with the list, the dicts and their names."""
    if type(made) not in (list, tuple) or len(made) != move.new:
        said = f"{move} ranks, it returned {type_in_words(made)}"
        return Finding(said, f"a list of {move.new}", "One dict for each new rank.", lazy(made))
    for rank, shard in enumerate(made):
        if type(shard) is not dict:
            return Finding(
                f"{move} ranks, new rank {rank} is {type_in_words(shard)}", "a dict", "One dict for each new rank."
            )
        if set(shard) != set(dims_of(move)):
            less = sorted(set(dims_of(move)) - set(shard))
            said = f"misses `{less[0]}`" if less else "has other names"
            empty = all(want(move, name, rank).numel() == 0 for name in less)
            mistake = known.RESHARD_EMPTY_DROPPED if less and empty else None
            return Finding(
                f"{move} ranks, new rank {rank} {said}", "the same names", "Every new rank has every name.", mistake
            )
    return None


def _how(got: Any, wanted: TensorData) -> str:
    if type(got) is not TensorData or got.dtype != wanted.dtype or got.shape != wanted.shape:
        return type_in_words(got)
    return f"of numbers {_listed(got)}"


def _listed(data: TensorData) -> str:
    shown = ", ".join(f"{number:g}" for number in data.numbers[:4])
    return shown + (", ..." if len(data.numbers) > 4 else "") if shown else "none"


def _named(move: Move, made: Any, name: str) -> Mistake | None:
    """The mistake that explains one tensor on all new ranks."""
    found = [shard[name] for shard in made]
    right = [plain(want(move, name, rank)) for rank in range(move.new)]
    pairs = list(zip(found, right, strict=True))
    alike = all(type(f) is TensorData and f.shape == w.shape for f, w in pairs)
    if alike and any(f.dtype != w.dtype for f, w in pairs):
        return known.RESHARD_DTYPE
    for mistake, guess in guesses(move, name):
        if [(f.shape, f.numbers) if type(f) is TensorData else f for f in found] == [
            (tuple(t.shape), tuple(t.reshape(-1).tolist())) for t in guess
        ]:
            return mistake
    return None


# --- memory, inputs, refusals -----------------------------------------------------------------------------------------


MEMORY = {
    "shared": ("shares memory with another tensor", known.RESHARD_SHARED),
    "view": ("holds on to more memory than its numbers take", known.RESHARD_VIEW),
    "strides": ("is not contiguous", known.RESHARD_STRIDES),
}


def _owned(bench: Bench) -> Finding | None:
    for moves in (EVEN, COPIES, UNEVEN, KINDS):
        found = asked(bench, _probe, moves)
        for move, value in zip(moves, found, strict=True) if isinstance(found, list) else ():
            for rank, name, what in value["memory"]:
                said, mistake = MEMORY[what]
                return Finding(f"{move} ranks, `{name}` on new rank {rank} {said}", "", "", mistake)
    return None


def _untouched(bench: Bench) -> Finding | None:
    for moves in (EVEN, COPIES, UNEVEN, KINDS):
        found = asked(bench, _probe, moves)
        for move, value in zip(moves, found, strict=True) if isinstance(found, list) else ():
            if value["changed"]:
                return Finding(f"{move} ranks, `shards` or `dims` were changed", "", "", known.RESHARD_INPUT_CHANGED)
    return None


REFUSED = {
    "no shards": "an empty list of shards",
    "none": "n = 0",
    "missing": "a shard without a name that the others have",
    "more": "a shard with a name that the others lack",
    "dims": "`dims` without a name that the shards have",
    "more dims": "`dims` with a name that the shards lack",
    "other size": "parts of 3 and of 4 columns, cut along rows",
    "other dtype": "parts of float32 and of float64",
    "other whole": "whole tensors of 3 and of 4 numbers",
    "whole dtype": "whole tensors of float32 and of int64",
    "no such dim": "a dim 2 of tensors with two dims",
}


def _bad(kind: str) -> tuple[list[dict[str, Any]], dict[str, int | None], int]:
    import torch

    shards = [{"w": torch.ones(2, 3), "b": torch.ones(3)} for _ in range(2)]
    dims: dict[str, int | None] = {"w": 0, "b": None}
    second = {
        "missing": {"w": torch.ones(2, 3)},
        "more": {**shards[1], "c": torch.ones(1)},
        "other size": {**shards[1], "w": torch.ones(2, 4)},
        "other dtype": {**shards[1], "w": torch.ones(2, 3, dtype=torch.float64)},
        "other whole": {**shards[1], "b": torch.ones(4)},
        "whole dtype": {**shards[1], "b": torch.ones(3, dtype=torch.int64)},
    }
    shards[1] = second.get(kind, shards[1])
    changed: dict[str, dict[str, int | None]] = {
        "dims": {"w": 0},
        "more dims": {**dims, "c": None},
        "no such dim": {"w": 2, "b": None},
    }
    return [] if kind == "no shards" else shards, changed.get(kind, dims), 0 if kind == "none" else 2


def _probe_refusals(learner: Any, kinds: tuple[str, ...], seat: Seat) -> list[tuple[str, Any]]:
    """For each call the error that it raised, or "" and what came back."""
    found: list[tuple[str, Any]] = []
    for kind in kinds:
        try:
            found.append(("", plain(learner(*_bad(kind)))))
        except NotImplementedError:
            raise
        except Exception as error:
            found.append(("ValueError" if isinstance(error, ValueError) else type(error).__name__, None))
    return found


def _refused(bench: Bench) -> Finding | None:
    found = bench.run(_probe_refusals, tuple(REFUSED), n=1).values[0]
    for (error, value), said in zip(found, REFUSED.values(), strict=True):
        if not error:
            return Finding(f"with {said}, it returned {type_in_words(value)}", "", "", NOT_REFUSED)
        if error != "ValueError":
            return Finding(f"with {said}, it raised {error}", "", "", OTHER_ERROR)
    return None


_CUT = "what was cut is cut anew"

CHECKS = {
    "reshard_state": (
        Check(_CUT, 3, lambda bench: _numbers(bench, EVEN), "the parts of `torch.tensor_split`"),
        Check("what was whole stays whole", 1, lambda bench: _numbers(bench, COPIES), "the whole on each new rank",
              needs=_CUT),
        Check("uneven parts, and empty ones", 2, lambda bench: _numbers(bench, UNEVEN), "all names on each new rank",
              needs=_CUT),
        Check("every dtype is kept", 1, lambda bench: _numbers(bench, KINDS), "the dtype that came in", needs=_CUT),
        Check("each new tensor owns its memory", 2, _owned, "contiguous, and memory for its own numbers alone",
              needs=_CUT),
        Check("the shards stay as they were", 1, _untouched, "`shards` and `dims` as they were", needs=_CUT),
        Check("the impossible is refused", 1, _refused, "a ValueError"),
    )
}  # fmt: skip
