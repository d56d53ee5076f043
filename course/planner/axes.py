"""What travels along each axis of a mesh in one training step, on paper: bytes a rank sends along pp, dp and tp.

The GPT and its split are those of `parallel.hybrid`. What those bytes cost on a link is reckoned in `network`.
"""

from __future__ import annotations

from course.errors import UsageError
from course.spec import ModelSpec


def axis_bytes(spec: ModelSpec, *, pp: int, dp: int, tp: int, batch: int, itemsize: int = 4) -> dict[str, float]:
    """{"pp": ..., "dp": ..., "tp": ...}: bytes that a rank sends along each axis in a step, the mean over all ranks.

    batch: samples a step, over all ranks. itemsize: bytes a number, of activations and gradients alike.
    tp: four all-reduces a layer (Korthikanti et al. 2022), one for the embedding and one for the head, each of
    2(tp-1)/tp times this rank's activations. pp: an activation over each boundary and its gradient back, and a tied
    embedding's gradient there and back. dp: an all-reduce of the rank's gradients, 2(dp-1)/dp times their bytes, as if
    norms and positions were split, too. Losses and norms are left out. Raises UsageError for sizes below 1.
    """
    if min(pp, dp, tp, batch, itemsize) < 1:
        raise UsageError(
            f"axis_bytes(pp={pp}, dp={dp}, tp={tp}, batch={batch}, itemsize={itemsize}): each is at least 1"
        )
    activation = batch / dp * spec.context * spec.width * itemsize
    table = spec.vocab * spec.width / tp * itemsize  # one rank's share of the embedding
    second = table if spec.tied and pp > 1 else 0.0  # the copy that the last stage holds
    gradients = (_parameters(spec) / tp * itemsize + second) / pp
    return {
        "pp": (2 * (pp - 1) * activation + 2 * second) / pp,
        "dp": 2 * (dp - 1) / dp * gradients,
        "tp": (4 * spec.layers + 2) / pp * 2 * (tp - 1) / tp * activation,
    }


def _parameters(spec: ModelSpec) -> int:
    """Of the course's GPT: embeddings, blocks, last norm, and a head of its own unless it is tied."""
    width, hidden = spec.width, spec.hidden
    attention = 4 * width**2 + 4 * width
    mlp = 2 * width * hidden + hidden + width
    tables = spec.vocab * (1 if spec.tied else 2) + spec.context
    return tables * width + spec.layers * (attention + mlp + 4 * width) + 2 * width
