# ruff: noqa: F811
from fractions import Fraction

from tests.grading.bank import right, wrong


def check(attention, *counts):
    if attention not in ("fused", "stored") or min(counts) < 1:
        raise ValueError("impossible")


class Sum:
    """A right answer in parts, of which a wrong one changes some."""

    def __init__(self, layers, width, heads, sequence, microbatch, itemsize, attention, dropout, recompute):
        check(attention, layers, width, heads, sequence, microbatch, itemsize)
        self.layers, self.size, self.recompute = layers, itemsize, recompute
        self.channels = microbatch * sequence * width
        self.weights = heads * sequence * sequence * microbatch if attention == "stored" else 0
        self.dropped = self.weights if dropout else 0
        self.masks = 2 * self.channels if dropout else 0
        self.weight_masks = self.dropped

    def whole(self):
        numbers = 16 * self.channels + self.weights + self.dropped
        return self.size * numbers + self.masks + self.weight_masks

    def total(self):
        if not self.recompute:
            return self.layers * self.whole()
        return (self.layers - 1) * self.size * self.channels + self.whole()


@right("in parts")
def activation_bytes(
    *, layers, width, heads, sequence, microbatch, itemsize=2, attention="fused", dropout=False, recompute=False
):
    return Sum(layers, width, heads, sequence, microbatch, itemsize, attention, dropout, recompute).total()


@right("the published formula for 16 bits, taken apart")
def activation_bytes(
    *, layers, width, heads, sequence, microbatch, itemsize=2, attention="fused", dropout=False, recompute=False
):
    check(attention, layers, width, heads, sequence, microbatch, itemsize)
    tokens, ratio = microbatch * sequence, Fraction(heads * sequence, width)
    a_channel = Fraction(16 * itemsize) + 2 * dropout
    if attention == "stored":
        a_channel += ratio * (itemsize + (itemsize + 1) * dropout)
    layer = tokens * width * a_channel
    if recompute:
        kept = tokens * width * itemsize
        return layers * kept + (layer - kept)
    return layers * layer


@right("token by token, as a float")
def activation_bytes(
    *, layers, width, heads, sequence, microbatch, itemsize=2, attention="fused", dropout=False, recompute=False
):
    if attention not in {"fused", "stored"}:
        raise ValueError(attention)
    for count in (layers, width, heads, sequence, microbatch, itemsize):
        if count < 1:
            raise ValueError(count)
    token = {"norms": 4 * width, "qkv": 3 * width, "attention": width, "mlp": 8 * width}
    nbytes = itemsize * sum(token.values())
    if attention == "stored":
        nbytes += heads * sequence * (2 * itemsize + 1 if dropout else itemsize)
    nbytes += 2 * width if dropout else 0
    held = [nbytes] * layers if not recompute else [nbytes] + [itemsize * width] * (layers - 1)
    return float(sum(held) * microbatch * sequence)


@wrong("STASH_ONE_LAYER", points=0)
def activation_bytes(
    *, layers, width, heads, sequence, microbatch, itemsize=2, attention="fused", dropout=False, recompute=False
):
    return Sum(layers, width, heads, sequence, microbatch, itemsize, attention, dropout, recompute).whole()


@wrong("STASH_ONE_SEQUENCE", points=0)
def activation_bytes(
    *, layers, width, heads, sequence, microbatch, itemsize=2, attention="fused", dropout=False, recompute=False
):
    check(attention, microbatch)
    return Sum(layers, width, heads, sequence, 1, itemsize, attention, dropout, recompute).total()


@wrong("STASH_ITEMSIZE_FIXED")
def activation_bytes(
    *, layers, width, heads, sequence, microbatch, itemsize=2, attention="fused", dropout=False, recompute=False
):
    check(attention, itemsize)
    return Sum(layers, width, heads, sequence, microbatch, 2, attention, dropout, recompute).total()


@wrong("STASH_ELEMENTS")
def activation_bytes(
    *, layers, width, heads, sequence, microbatch, itemsize=2, attention="fused", dropout=False, recompute=False
):
    check(attention, itemsize)
    return Sum(layers, width, heads, sequence, microbatch, 1, attention, dropout, recompute).total()


@wrong("STASH_DROPOUT_ALWAYS", points=0)
def activation_bytes(
    *, layers, width, heads, sequence, microbatch, itemsize=2, attention="fused", dropout=False, recompute=False
):
    return Sum(layers, width, heads, sequence, microbatch, itemsize, attention, True, recompute).total()


@wrong("STASH_WEIGHTS_LINEAR", points=3)
def activation_bytes(
    *, layers, width, heads, sequence, microbatch, itemsize=2, attention="fused", dropout=False, recompute=False
):
    it = Sum(layers, width, heads, sequence, microbatch, itemsize, attention, dropout, recompute)
    it.weights, it.dropped, it.weight_masks = (x // sequence for x in (it.weights, it.dropped, it.weight_masks))
    return it.total()


@wrong("STASH_WEIGHTS_ACROSS")
def activation_bytes(
    *, layers, width, heads, sequence, microbatch, itemsize=2, attention="fused", dropout=False, recompute=False
):
    it = Sum(layers, width, heads, sequence, microbatch, itemsize, attention, dropout, recompute)
    it.weights, it.dropped, it.weight_masks = (x * microbatch for x in (it.weights, it.dropped, it.weight_masks))
    return it.total()


@wrong("STASH_WEIGHTS_ONE_HEAD", points=3)
def activation_bytes(
    *, layers, width, heads, sequence, microbatch, itemsize=2, attention="fused", dropout=False, recompute=False
):
    return Sum(layers, width, 1, sequence, microbatch, itemsize, attention, dropout, recompute).total()


@wrong("STASH_WEIGHTS_ALWAYS", points=0)
def activation_bytes(
    *, layers, width, heads, sequence, microbatch, itemsize=2, attention="fused", dropout=False, recompute=False
):
    check(attention, 1)
    return Sum(layers, width, heads, sequence, microbatch, itemsize, "stored", dropout, recompute).total()


@wrong("STASH_WEIGHTS_NEVER")
def activation_bytes(
    *, layers, width, heads, sequence, microbatch, itemsize=2, attention="fused", dropout=False, recompute=False
):
    return Sum(layers, width, heads, sequence, microbatch, itemsize, "fused", dropout, recompute).total()


@wrong("STASH_TRIANGLE")
def activation_bytes(
    *, layers, width, heads, sequence, microbatch, itemsize=2, attention="fused", dropout=False, recompute=False
):
    it = Sum(layers, width, heads, sequence, microbatch, itemsize, attention, dropout, recompute)
    it.weights, it.dropped, it.weight_masks = (x / 2 for x in (it.weights, it.dropped, it.weight_masks))
    return it.total()


@wrong("STASH_MASKS_WIDE", points=5)
def activation_bytes(
    *, layers, width, heads, sequence, microbatch, itemsize=2, attention="fused", dropout=False, recompute=False
):
    it = Sum(layers, width, heads, sequence, microbatch, itemsize, attention, dropout, recompute)
    it.masks, it.weight_masks = it.masks * itemsize, it.weight_masks * itemsize
    return it.total()


@wrong("STASH_MASKS_FORGOTTEN")
def activation_bytes(
    *, layers, width, heads, sequence, microbatch, itemsize=2, attention="fused", dropout=False, recompute=False
):
    return Sum(layers, width, heads, sequence, microbatch, itemsize, attention, False, recompute).total()


@wrong("STASH_WEIGHTS_NOT_DROPPED", points=5)
def activation_bytes(
    *, layers, width, heads, sequence, microbatch, itemsize=2, attention="fused", dropout=False, recompute=False
):
    it = Sum(layers, width, heads, sequence, microbatch, itemsize, attention, dropout, recompute)
    it.dropped = it.weight_masks = 0
    return it.total()


@wrong("STASH_WEIGHTS_NOT_DROPPED", points=5)
def activation_bytes(
    *, layers, width, heads, sequence, microbatch, itemsize=2, attention="fused", dropout=False, recompute=False
):
    it = Sum(layers, width, heads, sequence, microbatch, itemsize, attention, dropout, recompute)
    it.dropped = 0
    return it.total()


@wrong("STASH_RECOMPUTE_IGNORED", points=6)
def activation_bytes(
    *, layers, width, heads, sequence, microbatch, itemsize=2, attention="fused", dropout=False, recompute=False
):
    return Sum(layers, width, heads, sequence, microbatch, itemsize, attention, dropout, False).total()


@wrong("STASH_RECOMPUTE_FREE", points=6)
def activation_bytes(
    *, layers, width, heads, sequence, microbatch, itemsize=2, attention="fused", dropout=False, recompute=False
):
    it = Sum(layers, width, heads, sequence, microbatch, itemsize, attention, dropout, recompute)
    return layers * itemsize * it.channels if recompute else it.total()


@wrong("STASH_INPUT_TWICE", points=6)
def activation_bytes(
    *, layers, width, heads, sequence, microbatch, itemsize=2, attention="fused", dropout=False, recompute=False
):
    it = Sum(layers, width, heads, sequence, microbatch, itemsize, attention, dropout, recompute)
    return layers * itemsize * it.channels + it.whole() if recompute else it.total()


@wrong("NOT_REFUSED", points=6)
def activation_bytes(
    *, layers, width, heads, sequence, microbatch, itemsize=2, attention="fused", dropout=False, recompute=False
):
    stored = "stored" if attention == "stored" else "fused"
    try:
        return Sum(layers, width, heads, sequence, microbatch, itemsize, stored, dropout, recompute).total()
    except ValueError:
        return 0


@wrong("OTHER_ERROR", points=6)
def activation_bytes(
    *, layers, width, heads, sequence, microbatch, itemsize=2, attention="fused", dropout=False, recompute=False
):
    assert attention in ("fused", "stored") and min(layers, sequence, microbatch, itemsize) > 0
    return Sum(layers, width, heads, sequence, microbatch, itemsize, attention, dropout, recompute).total()


@wrong(says="with its five sizes alone", points=0)
def activation_bytes(
    *, layers, width, heads, sequence, microbatch, itemsize=4, attention="fused", dropout=False, recompute=False
):
    return Sum(layers, width, heads, sequence, microbatch, itemsize, attention, dropout, recompute).total()


@wrong("GENERATOR", points=0)
def activation_bytes(
    *, layers, width, heads, sequence, microbatch, itemsize=2, attention="fused", dropout=False, recompute=False
):
    check(attention, layers)
    yield 0
