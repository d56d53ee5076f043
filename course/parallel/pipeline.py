"""Pipeline parallel: one executor that runs any schedule on real ranks.

Each rank holds some pieces of the model and does the actions of its list. Activations go to the next piece, gradients
to the one before. Schedules come from `spec.schedule`, pieces from `stages`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.pipelining._backward import stage_backward_input, stage_backward_weight
from torch.utils.checkpoint import checkpoint

from course.errors import UsageError
from course.spec.check import check_schedule
from course.spec.schedule import Action

Loss = Callable[[Tensor, Tensor], Tensor]
_HEADER = 8  # numbers in the message that announces a shape: dtype, number of dims, dims
_DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


@dataclass
class _Held:
    """What a rank keeps of one forward until its backward."""

    x: Tensor | None
    y: Tensor
    grad: Tensor | None = None
    groups: list[dict[str, Any]] = field(default_factory=list)  # what W still needs of a backward in two halves


class Pipeline(nn.Module):
    """This rank's pieces of a model, and the schedule they run by.

        pieces = cut_model(model, cuts)                          # the whole model, on every rank
        pipeline = Pipeline(pieces, one_f_one_b(4, 8), loss_fn=token_loss)
        optimizer = torch.optim.AdamW(pipeline.parameters())     # of this rank's pieces only
        loss = pipeline.step(x, y)                               # .grad is ready; mean loss on the last rank, else None

    With p ranks and chunks, piece c * p + r is chunk c of rank r. Nothing is sent to make one. Parameters that
    several pieces share (a tied embedding) get the sum of their gradients on each rank that holds them, so that they
    stay equal. recompute: keep only the input of each piece and run its forward again before backward.

    Bytes a step: an activation of each microbatch over each boundary and its gradient back, a header of 64 bytes a
    boundary in the first step, and the gradient of a shared parameter to its first holder and back. With one rank
    nothing is sent. Raises DeadlockError, with the circle of stages, for a schedule that cannot end, and UsageError
    where pieces, schedule and group do not fit together; nothing is sent then.
    """

    def __init__(
        self,
        pieces: Sequence[nn.Module],
        schedule: Sequence[Sequence[object]],
        *,
        loss_fn: Loss,
        group: dist.ProcessGroup | None = None,
        recompute: bool = False,
    ) -> None:
        super().__init__()
        self._schedule = check_schedule(schedule)
        self._group, self._loss_fn, self._recompute = group, loss_fn, recompute
        self._rank, self._ranks = dist.get_rank(group), dist.get_world_size(group)
        self._num_pieces = len(pieces)
        self._actions = self._fit(len(pieces))
        self._splits = any(action.kind == "W" for action in self._actions) and not recompute
        self.pieces = nn.ModuleList(pieces[self._rank :: self._ranks])
        self._shared = [(p, by) for p, by in _shared_parameters(pieces, self._ranks) if self._rank in by]
        self._shapes: dict[tuple[str, int], tuple[torch.dtype, tuple[int, ...]]] = {}
        self._incoming = {
            src: [move for move in self._moves(src) if move.to == self._rank] for src in range(self._ranks)
        }

    def _fit(self, num_pieces: int) -> tuple[Action, ...]:
        if len(self._schedule) != self._ranks:
            raise UsageError(f"this schedule is for {len(self._schedule)} ranks, but the group has {self._ranks}")
        chunks = 1 + max(action.chunk for actions in self._schedule for action in actions)
        if num_pieces != chunks * self._ranks:
            raise UsageError(
                f"{self._ranks} ranks with {chunks} chunk(s) each hold {chunks * self._ranks} pieces, "
                f"but the model was cut into {num_pieces}"
            )
        return self._schedule[self._rank]

    @property
    def num_microbatches(self) -> int:
        return 1 + max(action.microbatch for action in self._actions)

    def step(self, inputs: Tensor, targets: Tensor, *, weight: float = 1.0) -> Tensor | None:
        """Forward and backward of one batch, by the schedule; adds to `.grad` the gradient of the mean loss.

        inputs, targets: the whole batch on every rank (the first piece reads the one, the last piece the other), cut
        along dim 0 into microbatches as `tensor_split` does. Returns the mean loss over the batch, detached, on the
        rank of the last piece, and None on the others. weight: what the gradient (not the loss) is multiplied with, for
        a batch that is one of several before the optimizer's step. Raises UsageError for fewer samples than
        microbatches.
        """
        m = self.num_microbatches
        if len(inputs) < m or len(inputs) != len(targets):
            raise UsageError(
                f"a batch of {len(inputs)} inputs and {len(targets)} targets cannot be cut into {m} microbatches"
            )
        before = [parameter.grad for parameter, _ in self._shared]  # summed over their holders already
        for parameter, _ in self._shared:
            parameter.grad = None
        run = _Step(self, inputs.tensor_split(m), targets.tensor_split(m), weight)
        for place, action in enumerate(self._actions):
            run.expect(self._actions[place : place + 2])
            with torch.profiler.record_function(repr(action)):
                run.do(action)
        run.end()
        for (parameter, held_by), old in zip(self._shared, before, strict=True):
            grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            _sum_over_holders(grad, held_by, self._group)
            parameter.grad = grad if old is None else old + grad
        return run.loss

    # --- who sends what to whom ---------------------------------------------------------------------------------------

    def _moves(self, rank: int) -> list[_Move]:
        """What `rank` sends to others in one step, in its order."""
        moves = []
        for action in self._schedule[rank]:
            piece = action.chunk * self._ranks + rank
            target = {"F": piece + 1, "B": piece - 1}.get(action.kind, -1)
            if 0 <= target < self._num_pieces:
                moves.append(_Move(action.kind, action.microbatch, piece, target % self._ranks))
        return moves


@dataclass(frozen=True, slots=True)
class _Move:
    """An activation ("F") or gradient ("B") of one microbatch that leaves `piece` for rank `to` of the group."""

    kind: str
    microbatch: int
    piece: int
    to: int

    @property
    def tag(self) -> int:
        return (self.microbatch << 12 | self.piece) << 2 | (self.kind == "B")


class _Step:
    """One step of a Pipeline on this rank: what is held, what is under way."""

    def __init__(self, pipeline: Pipeline, inputs: Sequence[Tensor], targets: Sequence[Tensor], weight: float) -> None:
        self.pipeline, self.inputs, self.targets, self.weight = pipeline, inputs, targets, weight
        self.samples, self.device = sum(len(x) for x in inputs), inputs[0].device
        self.loss: Tensor | None = None
        self.held: dict[tuple[int, int], _Held] = {}
        self.local: dict[tuple[str, int, int], Tensor] = {}  # what goes to another piece of this very rank
        self.arriving: dict[tuple[str, int, int], tuple[dist.Work, Tensor]] = {}
        self.leaving: deque[tuple[dist.Work, Tensor]] = deque()
        self.queues = {src: deque(moves) for src, moves in pipeline._incoming.items()}

    def piece_of(self, action: Action) -> int:
        return action.chunk * self.pipeline._ranks + self.pipeline._rank

    def do(self, action: Action) -> None:
        {"F": self.forward, "B": self.backward, "W": self.weights}[action.kind](action)

    def forward(self, action: Action) -> None:
        pipe, k, piece = self.pipeline, action.microbatch, self.piece_of(action)
        x = self.inputs[k] if piece == 0 else self.take("F", k, piece - 1).requires_grad_()
        module = pipe.pieces[action.chunk]
        y = checkpoint(module, x, use_reentrant=False) if pipe._recompute else module(x)
        if piece == pipe._num_pieces - 1:
            loss = pipe._loss_fn(y, self.targets[k]) * (len(self.inputs[k]) / self.samples)
            self.loss = loss.detach() if self.loss is None else self.loss + loss.detach()
            y = loss * self.weight
        else:
            self.give("F", k, piece, piece + 1, y.detach())
        self.held[piece, k] = _Held(x if piece else None, y)

    def backward(self, action: Action) -> None:
        k, piece = action.microbatch, self.piece_of(action)
        held = self.held[piece, k]
        if piece < self.pipeline._num_pieces - 1:
            held.grad = self.take("B", k, piece + 1)
        if not self.pipeline._splits:
            del self.held[piece, k]
            held.y.backward(held.grad)
        elif held.x is not None:  # the first piece has no one to hand a gradient to: its W does all
            grads = None if held.grad is None else [held.grad]
            weights = self.pipeline.pieces[action.chunk].parameters()
            _, held.groups = stage_backward_input([held.y], grads, [held.x], weights)
        if held.x is not None and held.x.grad is not None:
            self.give("B", k, piece, piece - 1, held.x.grad)

    def weights(self, action: Action) -> None:
        if not self.pipeline._splits:
            return  # recomputed: its B has done both halves
        held = self.held.pop((self.piece_of(action), action.microbatch))
        if held.x is None:
            held.y.backward(held.grad)
        else:
            stage_backward_weight(self.pipeline.pieces[action.chunk].parameters(), held.groups)

    # --- messages -----------------------------------------------------------------------------------------------------

    def give(self, kind: str, k: int, piece: int, target: int, tensor: Tensor) -> None:
        """Start to send `tensor` to the piece `target`; a rank hands it over to itself."""
        pipe = self.pipeline
        to = target % pipe._ranks
        if to == pipe._rank:
            self.local[kind, k, piece] = tensor
            return
        while self.leaving and self.leaving[0][0].is_completed():
            self.leaving.popleft()[0].wait()
        tensor = tensor.contiguous()
        if kind == "F" and ("sent", piece) not in pipe._shapes:
            header = _header(tensor)
            self.leaving.append((self.isend(header, to, _Move("F", 0, piece, to).tag | 2), header))
            pipe._shapes["sent", piece] = tensor.dtype, tuple(tensor.shape[1:])
        self.leaving.append((self.isend(tensor, to, _Move(kind, k, piece, to).tag), tensor))

    def isend(self, tensor: Tensor, to: int, tag: int) -> dist.Work:
        work = dist.isend(tensor, group=self.pipeline._group, group_dst=to, tag=tag)
        if work is None:
            raise UsageError("this rank is not in the pipeline's group")
        return work

    def expect(self, actions: Sequence[Action]) -> None:
        """Post the receives of the next actions, so that messages arrive while this rank computes."""
        for action in actions:
            piece = self.piece_of(action)
            source = {"F": piece - 1, "B": piece + 1}.get(action.kind, -1)
            if 0 <= source < self.pipeline._num_pieces and source % self.pipeline._ranks != self.pipeline._rank:
                self.post((action.kind, action.microbatch, source))

    def post(self, key: tuple[str, int, int], *, needed: bool = False) -> None:
        """Post receives from the key's rank, in the order in which it sends, up to the key.

        Where a shape is not known yet, only a message that is `needed` now is waited for.
        """
        pipe = self.pipeline
        src = key[2] % pipe._ranks
        while key not in self.arriving:
            move = self.queues[src][0]
            shape = pipe._shapes.get(("got", move.piece) if move.kind == "F" else ("sent", move.piece - 1))
            if shape is None:
                if not needed:
                    return
                shape = pipe._shapes["got", move.piece] = self.read_header(move, src)
            self.queues[src].popleft()
            buffer = torch.empty(len(self.inputs[move.microbatch]), *shape[1], dtype=shape[0], device=self.device)
            work = dist.irecv(buffer, group=pipe._group, group_src=src, tag=move.tag)
            self.arriving[move.kind, move.microbatch, move.piece] = work, buffer  # type: ignore[assignment]

    def read_header(self, move: _Move, src: int) -> tuple[torch.dtype, tuple[int, ...]]:
        header = torch.empty(_HEADER, dtype=torch.int64, device=self.device)
        dist.recv(header, group=self.pipeline._group, group_src=src, tag=_Move("F", 0, move.piece, 0).tag | 2)
        dtype, dims, *sizes = header.tolist()
        return _DTYPES[dtype], tuple(sizes[:dims])

    def take(self, kind: str, k: int, source: int) -> Tensor:
        """What piece `source` has sent for microbatch k."""
        key = (kind, k, source)
        if source % self.pipeline._ranks == self.pipeline._rank:
            return self.local.pop(key)
        self.post(key, needed=True)
        work, buffer = self.arriving.pop(key)
        work.wait()
        return buffer

    def end(self) -> None:
        for work, _ in self.leaving:
            work.wait()


def _header(tensor: Tensor) -> Tensor:
    if tensor.dtype not in _DTYPES or tensor.dim() > _HEADER - 1:
        raise UsageError(
            f"a piece handed on {tensor.dtype} of {tensor.dim()} dims: a pipeline sends floating-point tensors of at "
            f"most {_HEADER - 1} dims"
        )
    numbers = [_DTYPES.index(tensor.dtype), tensor.dim() - 1, *tensor.shape[1:]]
    return torch.tensor(numbers + [0] * (_HEADER - len(numbers)), dtype=torch.int64, device=tensor.device)


def _shared_parameters(pieces: Sequence[nn.Module], ranks: int) -> list[tuple[nn.Parameter, list[int]]]:
    """(parameter, ranks of the group that hold it) for those that several ranks hold, in the order of the model."""
    holders: dict[int, tuple[nn.Parameter, list[int]]] = {}
    for place, piece in enumerate(pieces):
        for parameter in piece.parameters():
            held_by = holders.setdefault(id(parameter), (parameter, []))[1]
            if place % ranks not in held_by:
                held_by.append(place % ranks)
    return [(parameter, sorted(held_by)) for parameter, held_by in holders.values() if len(held_by) > 1]


def _sum_over_holders(grad: Tensor, held_by: Sequence[int], group: dist.ProcessGroup | None) -> None:
    """Sums `grad` over the ranks that hold its parameter, in place and in one order: equal on all, to the bit.

    By messages, not in a group of their own: gloo numbers a process's groups, so all ranks would have to make all.
    """
    first, *others = held_by
    if dist.get_rank(group) != first:
        dist.send(grad, group=group, group_dst=first)
        dist.recv(grad, group=group, group_src=first)
        return
    part = torch.empty_like(grad)
    for other in others:
        dist.recv(part, group=group, group_src=other)
        grad += part
    for other in others:
        dist.send(grad, group=group, group_dst=other)
