"""How many parameters, and how many FLOPs: counts alone, no chip and no seconds.

Narayanan et al. 2021 (SC21), equations 2 and 3, made general for grouped-query attention, SwiGLU and experts.
"""

from __future__ import annotations

from course.spec.shape import ModelShape


def layer_parameters(shape: ModelShape, *, active: bool = False) -> int:
    """Parameters of one layer: 2h² + 2h·kv + n_mat·h·ffn (an MLP for each expert) + norms and biases.

    active: only the experts that one token goes through. A router of h·experts is counted where there are any.
    """
    h = shape.hidden
    experts = shape.active_experts if active else shape.experts
    attention = 2 * h * h + 2 * h * shape.kv_hidden
    router = h * shape.experts if shape.experts > 1 else 0
    return attention + experts * shape.ffn_matrices * h * shape.ffn + router + shape.learned_norm


def embedding_parameters(shape: ModelShape) -> int:
    """Parameters of the token table, and of the position table where there is one: (V + positions) h."""
    return (shape.vocab + shape.positions) * shape.hidden


def count_parameters(shape: ModelShape, *, active: bool = False) -> int:
    """All parameters: 12Lh²(1 + 13/(12h) + (V+s)/(12Lh)) for a GPT, plus the last norm (SC21, equation 2)."""
    norms = (2 if shape.ffn_matrices == 2 else 1) * shape.hidden
    head = 0 if shape.tied else shape.vocab * shape.hidden
    return shape.layers * layer_parameters(shape, active=active) + embedding_parameters(shape) + head + norms


def model_flops(shape: ModelShape, *, batch: int, sequence: int) -> float:
    """FLOPs of one step, forward and backward, without recomputation: 72BLsh²(1 + s/(6h) + V/(12hL)) for a GPT.

    Attention counts the whole square of scores, as the papers do (SC21, section 5.1).
    """
    return 3 * batch * sequence * (shape.layers * _layer_flops(shape, sequence) + 2 * shape.hidden * shape.vocab)


def hardware_flops(shape: ModelShape, *, batch: int, sequence: int, recompute: str) -> float:
    """FLOPs done, the recomputed ones too: full adds a forward pass, 96BsLh²(1 + s/(6h) + V/(16Lh)) for a GPT
    (SC21, equation 3); selective adds attention's scores alone (Korthikanti et al. 2022, appendix A), alternate
    half of a forward pass."""
    whole = _layer_flops(shape, sequence)
    again = {"none": 0.0, "selective": 4.0 * sequence * shape.hidden, "alternate": whole / 2, "full": whole}
    return model_flops(shape, batch=batch, sequence=sequence) + batch * sequence * shape.layers * again[recompute]


def training_flops(parameters: float, tokens: float) -> float:
    """FLOPs of a whole run, 6 a parameter and token: GPT-3 is 6 x 174.6e9 x 300e9 = 3.14e23 (Brown et al. 2020)."""
    return 6 * parameters * tokens


def _layer_flops(shape: ModelShape, sequence: int) -> float:
    """Forward FLOPs of one layer for one token: 2 a weight, and 4sh for scores and their weighted sum."""
    return 2 * (layer_parameters(shape, active=True) - shape.learned_norm) + 4 * sequence * shape.hidden
