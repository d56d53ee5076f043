"""How a training step is split and run: the axes, the batch, the pipeline's schedule, what is sharded and recomputed.

One record, no arithmetic beyond divisions. Ranks on axes are in `spec.layout`; what a plan costs is in `planner`.
Standard library only.
"""

from __future__ import annotations

from dataclasses import dataclass

from course.errors import UsageError
from course.spec.shape import ModelShape

RECOMPUTE = ("none", "selective", "alternate", "full")
SCHEDULES = ("1f1b", "zb-1p", "zb-2p", "zb-v")
PRECISIONS = ("bf16", "fp8", "fp4", "float32")
ATTENTION = ("stored", "fused", "flash-2")


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """A layout of training, and what its software does. Sizes are whole numbers of at least 1.

    Raises UsageError for values that cannot be.
    """

    dp: int = 1  # ways the batch is split
    tp: int = 1  # ways each layer is split
    pp: int = 1  # ways the layers are split
    cp: int = 1  # ways each sequence is split
    chunks: int = 1  # pieces of the model that a pipeline rank holds; 1: not interleaved
    microbatch: int = 1  # samples (whole sequences) of a microbatch
    global_batch: int = 1  # samples of a step
    sequence: int = 2048  # tokens of a sample
    zero: int = 0  # what dp shards: nothing, Adam's states, gradients too, weights too (Rajbhandari et al. 2020)
    recompute: str = "none"  # what backward computes again; `planner.memory` says what each kind keeps
    sequence_parallel: bool = False  # norms and dropout are split over tp too (Korthikanti et al. 2022)
    schedule: str = "1f1b"
    precision: str = "bf16"  # of the products inside layers, the head's at least in 16 bits; "float32": all of it
    attention: str = "fused"  # "stored" keeps the scores; "flash-2" is fused, but written for Ampere
    compiled: bool = True  # element-wise operations between matrix products are fused
    dropout: bool = False  # its masks are kept
    fused_loss: bool = False  # softmax and loss are one kernel
    overlap_dp: bool = True  # messages of dp run beside computing
    overlap_tp: bool = False  # and those of tp beside their matrix products
    overlap_pp: bool = True  # and those of pp; else a stage stands still while it sends and receives
    scatters_pp: bool = True  # tp's ranks each send a part of an activation to the next stage, and gather it there
    grad_bytes: int = 4  # of a gradient as it is held: 2, 4, or 6 for both
    wire_bytes: int = 4  # of a gradient as it is sent
    fused_sums: bool = True  # gradients of microbatches are added up inside the matrix products that make them
    logit_grad_bytes: int = 4  # of a logit's gradient, where the loss is one kernel
    bucket_bytes: int = 0  # of gradients that are copied together before dp sums them
    casts: bool = False  # products of 8 or 4 bits first read their operands to scale and cast them, in an extra pass
    repeats_kv: bool = False  # keys and values are repeated to all heads before cp exchanges them

    def __post_init__(self) -> None:
        for field in ("dp", "tp", "pp", "cp", "chunks", "microbatch", "global_batch", "sequence"):
            value = getattr(self, field)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise UsageError(f"Plan({field}={value!r}): {field} must be a whole number of at least 1")
        words = {"recompute": RECOMPUTE, "schedule": SCHEDULES, "precision": PRECISIONS, "attention": ATTENTION}
        for field, legal in words.items():
            if getattr(self, field) not in legal:
                raise UsageError(f"Plan({field}={getattr(self, field)!r}): try one of {', '.join(legal)}")
        if self.zero not in (0, 1, 2, 3):
            raise UsageError(f"Plan(zero={self.zero!r}): the stages of ZeRO are 0, 1, 2 and 3")
        if self.global_batch % (self.dp * self.microbatch):
            raise UsageError(
                f"a batch of {self.global_batch} does not divide by dp={self.dp} x microbatch={self.microbatch}: "
                f"try {max(1, round(self.global_batch / (self.dp * self.microbatch))) * self.dp * self.microbatch}"
            )
        if self.sequence % self.cp:
            raise UsageError(f"a sequence of {self.sequence} does not divide by cp={self.cp}")

    def __str__(self) -> str:
        words = [f"{axis}={getattr(self, axis)}" for axis in ("dp", "tp", "pp", "cp", "chunks", "microbatch")]
        words += [f"zero={self.zero}", f"recompute={self.recompute}"]
        return ",".join(words)

    @property
    def num_gpus(self) -> int:
        return self.dp * self.tp * self.pp * self.cp

    @property
    def microbatches(self) -> int:
        """m, microbatches a pipeline (or an accumulating rank) runs in a step: B / (d b)."""
        return self.global_batch // (self.dp * self.microbatch)

    @property
    def tokens(self) -> int:
        """Tokens of one microbatch on one rank: b s / c."""
        return self.microbatch * self.sequence // self.cp

    def check(self, shape: ModelShape) -> None:
        """Raises UsageError, with the nearest size that works, where the shape cannot be split like this."""
        for what, size in (("heads", shape.heads), ("MLP channels", shape.ffn)):
            if size % self.tp:
                near = max(n for n in range(1, self.tp) if size % n == 0)
                raise UsageError(f"{shape.name}: {size} {what} do not divide by tp={self.tp}: try tp={near}")
        if self.pp * self.chunks > shape.layers + 2:
            raise UsageError(
                f"{shape.name}: {shape.layers} layers are too few for pp={self.pp} x chunks={self.chunks}: "
                f"try pp={max(1, (shape.layers + 2) // self.chunks)}"
            )


def stage_layers(layers: int, pp: int) -> tuple[int, ...]:
    """Layers of each pipeline stage. Equal where pp divides; one layer less on the first and the last where that
    divides (Llama 3, section 3.3.2; Qi et al. 2024: the embedding and the head count as a layer); else the first ones
    are larger by one."""
    if layers % pp and (layers + 2) % pp == 0 and pp > 1:
        full = (layers + 2) // pp
        return (full - 1, *(full,) * (pp - 2), full - 1)
    return tuple(layers // pp + (stage < layers % pp) for stage in range(pp))
