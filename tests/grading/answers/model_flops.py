# ruff: noqa: F811
from fractions import Fraction

import numpy as np

from course.planner import model_flops as of_the_planner
from course.spec.shape import ModelShape
from tests.grading.bank import right, wrong


def check(layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence):
    if min(layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence) < 1:
        raise ValueError("sizes of at least 1")
    if hidden % heads or heads % kv_heads:
        raise ValueError("heads")


@right("in closed form")
def model_flops(*, layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence):
    check(layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence)
    kv = kv_heads * (hidden // heads)
    weights = layers * (2 * hidden**2 + 2 * hidden * kv + ffn_matrices * hidden * ffn) + hidden * vocab
    return batch * sequence * (6 * weights + 12 * layers * hidden * sequence)


@right("product after product, as floats")
def model_flops(*, layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence):
    check(layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence)

    def product(m, k, n):
        return 2.0 * m * k * n

    width = hidden / heads
    forward = 0.0
    for _layer in range(layers):
        forward += 2 * product(sequence, hidden, hidden) + 2 * product(sequence, hidden, kv_heads * width)
        forward += ffn_matrices * product(sequence, hidden, ffn)
        forward += heads * (product(sequence, width, sequence) + product(sequence, sequence, width))
    return 3 * batch * (forward + product(sequence, hidden, vocab))


@right("the planner's, for a ModelShape")
def model_flops(*, layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence):
    sizes = {"layers": layers, "hidden": hidden, "heads": heads, "kv_heads": kv_heads, "ffn": ffn, "vocab": vocab}
    if batch < 1 or sequence < 1:
        raise ValueError("no tokens")
    return of_the_planner(ModelShape(name="asked", ffn_matrices=ffn_matrices, **sizes), batch=batch, sequence=sequence)


@right("a number of numpy")
def model_flops(*, layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence):
    check(layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence)
    columns = np.float64([hidden, hidden, *(hidden * kv_heads / heads,) * 2, *(ffn,) * ffn_matrices, 2 * sequence])
    return 6 * np.float64(batch * sequence) * hidden * (layers * columns.sum() + vocab)


@right("a fraction, arguments by place")
def model_flops(layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence):
    check(layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence)
    attention = 2 * hidden**2 * (1 + Fraction(kv_heads, heads)) + 2 * hidden * sequence
    return 6 * batch * sequence * (layers * (attention + ffn_matrices * hidden * ffn) + hidden * vocab)


@wrong("FLOPS_FORWARD_ONLY", points=0)
def model_flops(*, layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence):
    check(layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence)
    kv = kv_heads * (hidden // heads)
    layer = 2 * hidden**2 + 2 * hidden * kv + ffn_matrices * hidden * ffn + 2 * hidden * sequence
    return 2 * batch * sequence * (layers * layer + hidden * vocab)


@wrong("FLOPS_BACKWARD_AS_FORWARD", points=0)
def model_flops(*, layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence):
    check(layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence)
    kv = kv_heads * (hidden // heads)
    layer = 2 * hidden**2 + 2 * hidden * kv + ffn_matrices * hidden * ffn + 2 * hidden * sequence
    return 4 * batch * sequence * (layers * layer + hidden * vocab)


@wrong("FLOPS_RECOMPUTED", points=0)
def model_flops(*, layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence):
    check(layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence)
    kv = kv_heads * (hidden // heads)
    layer = 2 * hidden**2 + 2 * hidden * kv + ffn_matrices * hidden * ffn + 2 * hidden * sequence
    return 8 * batch * sequence * (layers * layer + hidden * vocab)


@wrong("FLOPS_RECOMPUTED", points=0)
def model_flops(*, layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence):
    check(layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence)
    kv = kv_heads * (hidden // heads)
    layer = 2 * hidden**2 + 2 * hidden * kv + ffn_matrices * hidden * ffn + 2 * hidden * sequence
    return batch * sequence * (8 * layers * layer + 6 * hidden * vocab)


@wrong("FLOPS_MULTIPLY_ADDS", points=0)
def model_flops(*, layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence):
    check(layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence)
    kv = kv_heads * (hidden // heads)
    layer = 2 * hidden**2 + 2 * hidden * kv + ffn_matrices * hidden * ffn + 2 * hidden * sequence
    return 3 * batch * sequence * (layers * layer + hidden * vocab)


@wrong("FLOPS_A_TOKEN", points=0)
def model_flops(*, layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence):
    check(layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence)
    kv = kv_heads * (hidden // heads)
    layer = 2 * hidden**2 + 2 * hidden * kv + ffn_matrices * hidden * ffn + 2 * hidden * sequence
    return 6 * (layers * layer + hidden * vocab)


@wrong("FLOPS_ONE_SEQUENCE", points=0)
def model_flops(*, layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence):
    check(layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence)
    kv = kv_heads * (hidden // heads)
    layer = 2 * hidden**2 + 2 * hidden * kv + ffn_matrices * hidden * ffn + 2 * hidden * sequence
    return 6 * sequence * (layers * layer + hidden * vocab)


@wrong("FLOPS_NO_SCORES", points=0)
def model_flops(*, layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence):
    check(layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence)
    kv = kv_heads * (hidden // heads)
    layer = 2 * hidden**2 + 2 * hidden * kv + ffn_matrices * hidden * ffn
    return 6 * batch * sequence * (layers * layer + hidden * vocab)


@wrong("FLOPS_NO_SCORES", points=0)
def model_flops(*, layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence):
    check(layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence)
    kv = kv_heads * (hidden // heads)
    layer = 2 * hidden**2 + 2 * hidden * kv + ffn_matrices * hidden * ffn
    return 6 * batch * sequence * (layers * layer + 2 * hidden * vocab)  # all parameters


@wrong("FLOPS_HALF_THE_SCORES", points=0)
def model_flops(*, layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence):
    check(layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence)
    kv = kv_heads * (hidden // heads)
    layer = 2 * hidden**2 + 2 * hidden * kv + ffn_matrices * hidden * ffn + hidden * sequence  # half is masked
    return 6 * batch * sequence * (layers * layer + hidden * vocab)


@wrong("FLOPS_SCORES_A_HEAD", points=0)
def model_flops(*, layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence):
    check(layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence)
    kv = kv_heads * (hidden // heads)
    layer = 2 * hidden**2 + 2 * hidden * kv + ffn_matrices * hidden * ffn + 2 * heads * hidden * sequence
    return 6 * batch * sequence * (layers * layer + hidden * vocab)


@wrong("FLOPS_SCORES_A_HEAD", points=0)
def model_flops(*, layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence):
    check(layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence)
    kv = kv_heads * (hidden // heads)
    layer = 2 * hidden**2 + 2 * hidden * kv + ffn_matrices * hidden * ffn + 2 * (hidden // heads) * sequence
    return 6 * batch * sequence * (layers * layer + hidden * vocab)


@wrong("FLOPS_SCORES_SQUARED", points=0)
def model_flops(*, layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence):
    check(layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence)
    kv = kv_heads * (hidden // heads)
    layer = 2 * hidden**2 + 2 * hidden * kv + ffn_matrices * hidden * ffn + 2 * hidden * sequence**2
    return 6 * batch * sequence * (layers * layer + hidden * vocab)


@wrong("FLOPS_NO_HEAD", points=0)
def model_flops(*, layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence):
    check(layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence)
    kv = kv_heads * (hidden // heads)
    layer = 2 * hidden**2 + 2 * hidden * kv + ffn_matrices * hidden * ffn + 2 * hidden * sequence
    return 6 * batch * sequence * layers * layer


@wrong("FLOPS_LOOKUP_COUNTED", points=0)
def model_flops(*, layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence):
    check(layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence)
    kv = kv_heads * (hidden // heads)
    layer = 2 * hidden**2 + 2 * hidden * kv + ffn_matrices * hidden * ffn + 2 * hidden * sequence
    return 6 * batch * sequence * (layers * layer + 2 * hidden * vocab)


@wrong("FLOPS_HEAD_A_LAYER", points=0)
def model_flops(*, layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence):
    check(layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence)
    kv = kv_heads * (hidden // heads)
    layer = 2 * hidden**2 + 2 * hidden * kv + ffn_matrices * hidden * ffn + 2 * hidden * sequence
    return 6 * batch * sequence * layers * (layer + hidden * vocab)


@wrong("FLOPS_PROJECTION_MISSING", points=0)
def model_flops(*, layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence):
    check(layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence)
    kv = kv_heads * (hidden // heads)
    layer = hidden**2 + 2 * hidden * kv + ffn_matrices * hidden * ffn + 2 * hidden * sequence
    return 6 * batch * sequence * (layers * layer + hidden * vocab)


@wrong("FLOPS_PROJECTION_MISSING", points=0)
def model_flops(*, layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence):
    check(layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence)
    kv = kv_heads * (hidden // heads)
    layer = 2 * hidden**2 + hidden * kv + ffn_matrices * hidden * ffn + 2 * hidden * sequence
    return 6 * batch * sequence * (layers * layer + hidden * vocab)


@wrong("FLOPS_FFN_IS_FOUR", points=0)
def model_flops(*, layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence):
    check(layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence)
    kv = kv_heads * (hidden // heads)
    layer = 2 * hidden**2 + 2 * hidden * kv + ffn_matrices * 4 * hidden**2 + 2 * hidden * sequence
    return 6 * batch * sequence * (layers * layer + hidden * vocab)


@wrong("FLOPS_ALL_KV_HEADS", points=4)
def model_flops(*, layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence):
    check(layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence)
    layer = 2 * hidden**2 + 2 * hidden * hidden + ffn_matrices * hidden * ffn + 2 * hidden * sequence
    return 6 * batch * sequence * (layers * layer + hidden * vocab)


@wrong("FLOPS_SCORES_OF_KV", points=4)
def model_flops(*, layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence):
    check(layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence)
    kv = kv_heads * (hidden // heads)
    layer = 2 * hidden**2 + 2 * hidden * kv + ffn_matrices * hidden * ffn + 2 * kv * sequence
    return 6 * batch * sequence * (layers * layer + hidden * vocab)


@wrong("FLOPS_ONE_NARROW", points=4)
def model_flops(*, layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence):
    check(layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence)
    kv = kv_heads * (hidden // heads)
    layer = 3 * hidden**2 + hidden * kv + ffn_matrices * hidden * ffn + 2 * hidden * sequence
    return 6 * batch * sequence * (layers * layer + hidden * vocab)


@wrong("FLOPS_TWO_MATRICES", points=4)
def model_flops(*, layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence):
    check(layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence)
    kv = kv_heads * (hidden // heads)
    layer = 2 * hidden**2 + 2 * hidden * kv + 2 * hidden * ffn + 2 * hidden * sequence
    return 6 * batch * sequence * (layers * layer + hidden * vocab)


@wrong("FLOPS_KV_BY_HIDDEN", points=0)
def model_flops(*, layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence):
    check(layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence)
    layer = 2 * hidden**2 + 2 * hidden * kv_heads + ffn_matrices * hidden * ffn + 2 * hidden * sequence
    return 6 * batch * sequence * (layers * layer + hidden * vocab)


@wrong("NOT_REFUSED", points=7)
def model_flops(*, layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence):
    layer = 2 * hidden**2 * (1 + kv_heads / heads) + ffn_matrices * hidden * ffn + 2 * hidden * sequence
    return 6 * batch * sequence * (layers * layer + hidden * vocab)


@wrong("OTHER_ERROR", points=7)
def model_flops(*, layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence):
    assert min(layers, batch, sequence) > 0 and hidden % heads == 0 and heads % kv_heads == 0
    layer = 2 * hidden**2 * (1 + kv_heads / heads) + ffn_matrices * hidden * ffn + 2 * hidden * sequence
    return 6 * batch * sequence * (layers * layer + hidden * vocab)


@wrong("GENERATOR", points=0)
def model_flops(*, layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence):
    for _ in range(layers):
        yield 6 * batch * sequence * (4 * hidden**2 + ffn_matrices * hidden * ffn + 2 * hidden * sequence)


@wrong("PRINTED", points=0)
def model_flops(*, layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence):
    layer = 2 * hidden**2 * (1 + kv_heads / heads) + ffn_matrices * hidden * ffn + 2 * hidden * sequence
    print(6 * batch * sequence * (layers * layer + hidden * vocab))


@wrong("FLOPS_NO_SCORES", points=0)
def model_flops(*, layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence):
    check(layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence)
    return 6 * batch * sequence * layers * 12 * hidden**2


@wrong("FLOPS_TWICE", points=0)
def model_flops(*, layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence):
    check(layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence)
    kv = kv_heads * (hidden // heads)
    layer = 2 * hidden**2 + 2 * hidden * kv + ffn_matrices * hidden * ffn + 2 * hidden * sequence
    return 12 * batch * sequence * (layers * layer + hidden * vocab)


@wrong("FLOPS_TWICE", points=0)
def model_flops(*, layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence):
    check(layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence)
    kv = kv_heads * (hidden // heads)
    layer = 2 * hidden**2 + 2 * hidden * kv + ffn_matrices * hidden * ffn + 4 * hidden * sequence
    return 6 * batch * sequence * (layers * layer + hidden * vocab)


@wrong("FLOPS_SCORES_ONE_LAYER", points=0)
def model_flops(*, layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence):
    check(layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence)
    kv = kv_heads * (hidden // heads)
    layer = 2 * hidden**2 + 2 * hidden * kv + ffn_matrices * hidden * ffn
    return 6 * batch * sequence * (layers * layer + hidden * vocab + 2 * hidden * sequence)


@wrong("FLOPS_FORWARD_ONLY", points=0)
def model_flops(*, layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence):
    check(layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence)
    kv = kv_heads * (hidden // heads)
    layer = 2 * hidden**2 + 2 * hidden * kv + ffn_matrices * hidden * ffn
    return 2 * batch * sequence * (layers * layer + hidden * vocab)


@wrong("FLOPS_RECOMPUTED", points=0)
def model_flops(*, layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence):
    check(layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence)
    beside = 1 + sequence / (6 * hidden) + vocab / (16 * layers * hidden)
    return 96 * batch * sequence * layers * hidden**2 * beside


@wrong(points=0, says="Take one token through one layer")
def model_flops(*, layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence):
    check(layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence)
    return 0
