"""Whether a call can be made: all ranks brought what fits together, and gloo computes what the call means.

Asked before the call, so that a mistake is a sentence with both lines and not garbage or an abort.
"""

from __future__ import annotations

from typing import Any

from course.errors import MismatchError, UsageError
from course.ranks.board import Board, Call
from course.ranks.frames import Places
from course.ranks.operators import COLLECTIVE, Operator

_REDUCE_OPS = ("SUM", "AVG", "MAX", "MIN", "PRODUCT", "BAND", "BOR", "BXOR")


def compare(call: Call, kind: str, rank: int, board: Board, places: Places) -> None:
    """Raise MismatchError if a rank that came before brought something else to the same call."""
    for peer in call.ranks:
        other = board.find(peer, call.group, call.number) if peer != rank else None
        if other is None or (other.signature == call.signature and (other.op == call.op or kind != COLLECTIVE)):
            continue
        here, there = (places.words(c.file, c.line) for c in (call, other))
        if other.op != call.op and kind == COLLECTIVE:
            raise MismatchError(
                f"rank {peer} called {other.op} ({there}), rank {rank} called {call.op} ({here}): "
                f"every rank of a group must call the same collectives in the same order"
            )
        what = "one shape, dtype, root and reduce op" if kind == COLLECTIVE else "as many elements of one dtype"
        raise MismatchError(
            f"{call.op}: rank {peer} has {_side(other, call)} ({there}), "
            f"rank {rank} has {_side(call, other)} ({here}): both must bring {what}"
        )


def _side(call: Call, other: Call) -> str:
    """One rank's part of a call that does not match, in words: its shapes, and what else differs."""
    said = [call.detail or call.signature]
    if call.peer != other.peer and call.peer >= 0 and call.op not in ("send", "recv"):
        said.append(f"root {call.peer}")
    mine, theirs = (next((op for op in _REDUCE_OPS if f".{op} " in c.signature), "") for c in (call, other))
    if mine != theirs:
        said.append(mine)
    return " ".join(said)


def gloo_safe(operator: Operator, args: tuple[Any, ...], call: Call, dtype: str, index: int) -> tuple[Any, ...]:
    """Arguments for which gloo computes what the call means, or UsageError with the reason.

    It mixes up strided tensors in broadcast and reduce, and writes partial sums into the tensors of ranks that are not
    the root. dtype: in words; index: this rank's in the group.
    """
    if ".AVG " in call.signature and not dtype.startswith(("float", "bfloat", "complex")):
        raise UsageError(
            f"{operator.name} with AVG of {dtype}: an average of whole numbers is not defined here; "
            f"use SUM and divide, or a tensor of floats"
        )
    if operator.schema not in ("broadcast_", "reduce_"):
        return args
    for tensor in args[0]:
        if not tensor.is_contiguous():
            raise UsageError(
                f"{operator.name}: the tensor of shape {tuple(tensor.shape)} is not contiguous (strides "
                f"{tensor.stride()}), and gloo would mix up its elements: use tensor.contiguous()"
            )
    if operator.name == "reduce" and index != args[operator.root_at or 3]:
        return ([tensor.clone() for tensor in args[0]], *args[1:])
    return args
