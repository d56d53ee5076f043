"""A small model for `hybrid_step`: its weights, who holds what of them on a mesh, and what one process does. No check.

An embedding, three blocks (norm, MLP) and a head that is tied to the embedding. tp cuts vocabulary and hidden channels,
and between layers the sequence. A rank's part of it, which takes notes, stands in `hybrid_stage`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from course.grading.plain import TensorData
from course.spec.layout import rank_to_coordinates

WIDTH, HIDDEN, VOCAB, TIME, BLOCKS = 8, 24, 12, 6, 3  # tp 1, 2 and 3 divide all that is cut
RATE, STEPS, MICROBATCHES, NO_LIMIT = 0.3, 2, 2, 1e9
CUT: dict[str, int | None] = {  # along which dim tp cuts a parameter; None: each rank of tp holds it whole
    "tokens": 0,
    "scale": None,
    "shift": None,
    "up": 0,
    "up_bias": 0,
    "down": 1,
    "down_bias": None,
}


@dataclass(frozen=True, slots=True)
class Mesh:
    """One run: the layout, the samples of a batch and the norm that gradients are clipped to."""

    dp: int
    pp: int
    tp: int
    samples: int
    max_norm: float = NO_LIMIT

    @property
    def n(self) -> int:
        return self.dp * self.pp * self.tp

    @property
    def sizes(self) -> dict[str, int]:
        return {"dp": self.dp, "pp": self.pp, "tp": self.tp}

    def place(self, rank: int) -> dict[str, int]:
        """This rank's index on each axis."""
        return rank_to_coordinates(rank, **self.sizes)

    def ranks(self, rank: int, axes: Sequence[str]) -> list[int]:
        """The ranks that differ from `rank` in these axes alone, and `rank`. "ends": the first and last of pp."""
        names = ["pp" if axis == "ends" else axis for axis in axes]
        mine = self.place(rank)
        found = [r for r in range(self.n) if all(mine[k] == v for k, v in self.place(r).items() if k not in names)]
        if "ends" in axes:
            found = [r for r in found if self.place(r)["pp"] in (0, self.pp - 1)]
        return found

    def parts(self) -> list[range]:
        """The samples of each index along dp."""
        size, more = divmod(self.samples, self.dp)
        starts = [d * size + min(d, more) for d in range(self.dp + 1)]
        return [range(a, b) for a, b in zip(starts, starts[1:], strict=False)]

    def share(self, rank: int) -> float:
        """The share of the batch that a rank trains on."""
        return len(self.parts()[self.place(rank)["dp"]]) / self.samples

    def blocks(self, stage: int) -> range:
        """The blocks of a stage."""
        size, more = divmod(BLOCKS, self.pp)
        starts = [s * size + min(s, more) for s in range(self.pp + 1)]
        return range(starts[stage], starts[stage + 1])

    def __str__(self) -> str:
        return f"with dp={self.dp}, pp={self.pp}, tp={self.tp} and {self.samples} samples"


def weights() -> dict[str, Any]:
    """The whole model."""
    import torch

    generator = torch.Generator().manual_seed(31)
    made = {"tokens": torch.randn(VOCAB, WIDTH, generator=generator) * 0.5}
    for block in range(BLOCKS + 1):  # the last one's norm alone stands before the head
        made[f"scale_{block}"] = 1 + 0.3 * torch.randn(WIDTH, generator=generator)
        made[f"shift_{block}"] = 0.3 * torch.randn(WIDTH, generator=generator)
        if block < BLOCKS:
            made[f"up_{block}"] = torch.randn(HIDDEN, WIDTH, generator=generator) * 0.4
            made[f"up_bias_{block}"] = torch.randn(HIDDEN, generator=generator) * 0.3
            made[f"down_{block}"] = torch.randn(WIDTH, HIDDEN, generator=generator) * 0.3
            made[f"down_bias_{block}"] = torch.randn(WIDTH, generator=generator) * 0.3
    return made


def cut_of(name: str) -> int | None:
    """The dim along which tp cuts a parameter, or None."""
    return CUT[name if name == "tokens" else name.rpartition("_")[0]]


def names_of(mesh: Mesh, rank: int) -> list[str]:
    """The parameters of a rank, in the order of its stage."""
    stage = mesh.place(rank)["pp"]
    own = {*mesh.blocks(stage), *((BLOCKS,) if stage == mesh.pp - 1 else ())}
    held = (name for name in weights() if name != "tokens" and int(name.rpartition("_")[2]) in own)
    return [*(("tokens",) if stage in (0, mesh.pp - 1) else ()), *held]


def shard_of(tensor: Any, name: str, mesh: Mesh, rank: int) -> Any:
    """This rank's part of a whole tensor."""
    dim = cut_of(name)
    return tensor if dim is None else tensor.tensor_split(mesh.tp, dim)[mesh.place(rank)["tp"]]


def batch(mesh: Mesh, step: int) -> tuple[Any, Any]:
    """x and y of one step: (samples, TIME) int64."""
    import torch

    generator = torch.Generator().manual_seed(90 + step)
    x = torch.randint(VOCAB, (mesh.samples, TIME), generator=generator)
    return x, (x * 5 + torch.arange(TIME)) % VOCAB


# --- one process ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Whole:
    """One process, step by step: the mean losses, the norms, and gradients (not clipped) and weights after by name."""

    losses: tuple[float, ...]
    norms: tuple[float, ...]
    gradients: tuple[dict[str, Any], ...]
    weights: tuple[dict[str, Any], ...]


@cache
def whole(samples: int, max_norm: float) -> Whole:
    """What STEPS steps of plain SGD on batches of `samples` make of the whole model."""
    import torch

    held = {name: tensor.requires_grad_() for name, tensor in weights().items()}
    losses, norms, gradients, after = [], [], [], []
    for step in range(STEPS):
        loss = _whole_loss(held, *batch(Mesh(1, 1, 1, samples), step))
        found = dict(zip(held, torch.autograd.grad(loss, list(held.values())), strict=True))
        norm = torch.stack([gradient.norm() for gradient in found.values()]).norm().item()
        with torch.no_grad():
            for name, tensor in held.items():
                tensor -= RATE * min(1.0, max_norm / norm) * found[name]
        losses.append(loss.item())
        norms.append(norm)
        gradients.append(found)
        after.append({name: tensor.detach().clone() for name, tensor in held.items()})
    return Whole(tuple(losses), tuple(norms), tuple(gradients), tuple(after))


def _whole_loss(held: Mapping[str, Any], x: Any, y: Any) -> Any:
    import torch.nn.functional as F

    h = held["tokens"][x]
    for k in range(BLOCKS):
        normed = F.layer_norm(h, (WIDTH,), held[f"scale_{k}"], held[f"shift_{k}"])
        inner = F.gelu(F.linear(normed, held[f"up_{k}"], held[f"up_bias_{k}"]))
        h = h + F.linear(inner, held[f"down_{k}"], held[f"down_bias_{k}"])
    h = F.layer_norm(h, (WIDTH,), held[f"scale_{BLOCKS}"], held[f"shift_{BLOCKS}"])
    return F.cross_entropy(F.linear(h, held["tokens"]).flatten(0, 1), y.flatten())


def flat(tensor: Any) -> list[float]:
    """Its numbers."""
    numbers: list[float] = tensor.detach().reshape(-1).tolist()
    return numbers


def numbers_of(value: Any) -> tuple[float, ...]:
    """The numbers of a tensor that came home; none for anything else."""
    return value.numbers if type(value) is TensorData else ()
