"""Checkpoints of a HybridGPT: saved under one layout, resumed under any other.

Written with torch.distributed.checkpoint, by the names that parameters have in the whole GPT, each rank its own pieces.
A checkpoint is a folder `step-00000120`. It is written beside its place under another name and renamed when whole: a
run that is killed while it saves leaves the one before.
"""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import Tensor, nn
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.metadata import ChunkStorageMetadata, MetadataIndex, TensorProperties
from torch.distributed.checkpoint.planner import TensorWriteData, WriteItem, WriteItemType

from course.errors import UsageError
from course.parallel.hybrid import HybridGPT

VERSION = 1
_ABOUT = "about.json"
_WHOLE = re.compile(r"step-(\d{8})")


class Pieces(Tensor):
    """What one rank holds of a tensor: some boxes of it. Speaks torch.distributed.checkpoint's protocol, no other.

    whole: the tensor's shape. boxes: (offset in the whole, the rank's own tensor, read and written in place).
    """

    boxes: list[tuple[tuple[int, ...], Tensor]]

    @staticmethod
    def __new__(cls, whole: Sequence[int], boxes: Sequence[tuple[tuple[int, ...], Tensor]]) -> Pieces:
        made = Tensor._make_wrapper_subclass(cls, torch.Size(whole), dtype=boxes[0][1].dtype)  # type: ignore[attr-defined]
        made.boxes = list(boxes)
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError(f"Pieces are only saved and loaded, not computed with ({func})")

    def __repr__(self) -> str:  # type: ignore[override]
        return f"Pieces({tuple(self.shape)}, at {[offset for offset, _ in self.boxes]})"

    def __create_write_items__(self, fqn: str, object: Any) -> list[WriteItem]:
        properties = TensorProperties.create_from_tensor(self.boxes[0][1])
        return [
            WriteItem(
                index=MetadataIndex(fqn, chunk.offsets),
                type=WriteItemType.SHARD,
                tensor_data=TensorWriteData(chunk=chunk, properties=properties, size=self.shape),
            )
            for chunk in self.__create_chunk_list__()
        ]

    def __create_chunk_list__(self) -> list[ChunkStorageMetadata]:
        return [ChunkStorageMetadata(torch.Size(offset), own.shape) for offset, own in self.boxes]

    def __get_tensor_shard__(self, index: MetadataIndex) -> Tensor:
        return next(own for offset, own in self.boxes if torch.Size(offset) == index.offset)


def pieces_of(parameter: nn.Parameter, values: Tensor) -> Pieces:
    """`values` (the parameter itself, or an optimizer's state of its shape) as pieces of the whole parameter's."""
    whole = getattr(parameter, "whole_shape", parameter.shape)
    part = getattr(parameter, "part", slice(None))
    if isinstance(part, Tensor):  # row numbers: one box for each run of consecutive ones
        return Pieces(whole, [(_offset(rows[0], whole), values[at]) for rows, at in _runs(part.tolist())])
    slices = part if isinstance(part, tuple) else (part,)
    starts = [s.start or 0 for s in slices] + [0] * (len(whole) - len(slices))
    return Pieces(whole, [(tuple(starts), values)])


def _offset(row: int, whole: Sequence[int]) -> tuple[int, ...]:
    return (row, *[0] * (len(whole) - 1))


def _runs(rows: list[int]) -> Iterator[tuple[list[int], slice]]:
    start = 0
    for at in range(1, len(rows) + 1):
        if at == len(rows) or rows[at] != rows[at - 1] + 1:
            yield rows[start:at], slice(start, at)
            start = at


def _state(model: HybridGPT, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Everything to be saved, in place: parameters, and the optimizer's state of each, by whole names."""
    state: dict[str, Any] = {}
    for name, parameter in model.whole_names().items():
        state[f"model.{name}"] = pieces_of(parameter, parameter.detach())
        for kind, value in optimizer.state[parameter].items():
            alike = isinstance(value, Tensor) and value.shape == parameter.shape
            state[f"optimizer.{name}.{kind}"] = pieces_of(parameter, value) if alike else value
    return state


def save_checkpoint(
    folder: Path | str,
    model: HybridGPT,
    optimizer: torch.optim.Optimizer,
    *,
    step: int,
    more: dict[str, Any] | None = None,
) -> Path:
    """Writes `folder`/step-NNNNNNNN; every rank calls it. Returns its path once all of it is there.

    more: anything that JSON holds, such as how far the data were read; it comes back from `load_checkpoint`. Writing
    fails as a whole: until the last moment the folder has another name. Raises UsageError for an optimizer whose state
    is split over dp (ZeRO-1), since no rank can name its parts.
    """
    if hasattr(optimizer, "consolidate_state_dict"):
        raise UsageError("save_checkpoint: this optimizer's state is split over dp; train with zero=False to save it")
    target = Path(folder) / f"step-{step:08d}"
    draft = target.with_name(f".{target.name}.writing")
    if dist.get_rank() == 0:
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
    dist.barrier()
    with _quiet():
        dcp.save(_state(model, optimizer), checkpoint_id=draft)
    if dist.get_rank() == 0:
        about = {
            "version": VERSION, "step": step, "layout": str(model.layout), "spec": dataclasses.asdict(model.spec),
            "more": more or {},
        }  # fmt: skip
        (draft / _ABOUT).write_text(json.dumps(about, indent=1))
        if target.exists():
            shutil.rmtree(target)
        draft.rename(target)
    dist.barrier()
    return target


def last_checkpoint(folder: Path | str) -> Path | None:
    """The whole checkpoint with the most steps, or None. Drafts that a killed run has left are passed over."""
    found = [path for path in Path(folder).glob("step-*") if _WHOLE.fullmatch(path.name)]
    return max(found, default=None, key=lambda path: path.name)


def load_checkpoint(path: Path | str, model: HybridGPT, optimizer: torch.optim.Optimizer) -> tuple[int, dict[str, Any]]:
    """(step, more) of a checkpoint, whose numbers `model` and `optimizer` then hold; every rank calls it.

    The layout may be another than the one it was saved under. Raises UsageError for a checkpoint that is torn, of
    another GPT, or of a newer version of the course; the checkpoint is never changed.
    """
    about = read_about(path)
    mine = dataclasses.asdict(model.spec)
    if about["spec"] != mine:
        differ = [
            f"{key} {about['spec'].get(key)}, not {value}"
            for key, value in mine.items()
            if about["spec"].get(key) != value
        ]
        raise UsageError(f"{path} is of another GPT: it has {'; '.join(differ)}")
    _fill(optimizer)
    try:
        state = _state(model, optimizer)
        with _quiet():
            dcp.load(state, checkpoint_id=path)
    except (Exception, CheckpointException) as error:  # torch's is no Exception
        raise UsageError(f"{path} cannot be read ({_first_line(error)}): take an earlier checkpoint") from None
    for name, parameter in model.whole_names().items():  # what is not a tensor comes back in the dictionary
        for kind, value in optimizer.state[parameter].items():
            if not isinstance(value, Tensor):
                optimizer.state[parameter][kind] = state[f"optimizer.{name}.{kind}"]
    return about["step"], about["more"]


def read_about(path: Path | str) -> dict[str, Any]:
    """What a checkpoint says of itself: version, step, layout, spec, more. Raises UsageError if it is torn or newer."""
    try:
        about: dict[str, Any] = json.loads((Path(path) / _ABOUT).read_text())
        version = about["version"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path} is no whole checkpoint ({_first_line(error)}): take another") from None
    if version > VERSION:
        raise UsageError(f"{path} was written by a newer version of the course ({version}, this one reads {VERSION})")
    return about


def _fill(optimizer: torch.optim.Optimizer) -> None:
    """Give a fresh optimizer the state that its first step would make, so that there is something to load into."""
    if any(optimizer.state.values()) or isinstance(optimizer, torch.optim.SGD):
        return
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    before = [(p.detach().clone(), p.grad) for p in parameters]
    rates = [group["lr"] for group in optimizer.param_groups]
    for p in parameters:
        p.grad = torch.zeros_like(p)
    for group in optimizer.param_groups:
        group["lr"] = 0.0
    optimizer.step()
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        group["lr"] = rate
    with torch.no_grad():
        for p, (numbers, grad) in zip(parameters, before, strict=True):
            p.copy_(numbers)
            p.grad = grad


def _first_line(error: BaseException) -> str:
    for cause, _ in getattr(error, "failures", {}).values():  # of torch's exception: what went wrong on some rank
        error = cause
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0][:200]}" if text else type(error).__name__


class _quiet(warnings.catch_warnings):
    """torch.distributed.checkpoint warns about its own internals."""

    def __enter__(self) -> Any:
        entered = super().__enter__()
        warnings.simplefilter("ignore")
        return entered
