# ruff: noqa: F811
import math
from fractions import Fraction

import torch

from tests.grading.bank import right, wrong


def check(layers, kv_heads, head_width, tokens, batch, dtype_bytes, tp):
    if min(layers, kv_heads, head_width, batch, dtype_bytes, tp) < 1 or tokens < 0 or kv_heads % tp:
        raise ValueError("impossible")


@right("one product")
def kv_cache_bytes(*, layers, kv_heads, head_width, tokens, batch=1, dtype_bytes=2, tp=1):
    check(layers, kv_heads, head_width, tokens, batch, dtype_bytes, tp)
    return 2 * layers * kv_heads // tp * head_width * tokens * batch * dtype_bytes


@right("layer by layer, key and value")
def kv_cache_bytes(*, layers, kv_heads, head_width, tokens, batch=1, dtype_bytes=2, tp=1):
    check(layers, kv_heads, head_width, tokens, batch, dtype_bytes, tp)
    shape = (batch, kv_heads // tp, tokens, head_width)
    return sum(math.prod(shape) * dtype_bytes for _layer in range(layers) for _what in ("key", "value"))


@right("divided at the end, as a float")
def kv_cache_bytes(*, layers, kv_heads, head_width, tokens, batch=1, dtype_bytes=2, tp=1):
    check(layers, kv_heads, head_width, tokens, batch, dtype_bytes, tp)
    a_token = 2 * layers * kv_heads * head_width * dtype_bytes
    return a_token * tokens * batch / tp


@right("a fraction")
def kv_cache_bytes(*, layers, kv_heads, head_width, tokens, batch=1, dtype_bytes=2, tp=1):
    check(layers, kv_heads, head_width, tokens, batch, dtype_bytes, tp)
    return Fraction(2 * layers * kv_heads * head_width * tokens * batch * dtype_bytes, tp)


@right("an int64 tensor of one number")
def kv_cache_bytes(*, layers, kv_heads, head_width, tokens, batch=1, dtype_bytes=2, tp=1):
    check(layers, kv_heads, head_width, tokens, batch, dtype_bytes, tp)
    return torch.tensor([2, layers, kv_heads // tp, head_width, tokens, batch, dtype_bytes]).prod()


@wrong("CACHE_KEYS_ONLY", points=0)
def kv_cache_bytes(*, layers, kv_heads, head_width, tokens, batch=1, dtype_bytes=2, tp=1):
    return layers * kv_heads // tp * head_width * tokens * batch * dtype_bytes


@wrong("CACHE_ONE_LAYER", points=0)
def kv_cache_bytes(*, layers, kv_heads, head_width, tokens, batch=1, dtype_bytes=2, tp=1):
    return 2 * kv_heads // tp * head_width * tokens * batch * dtype_bytes


@wrong("CACHE_ONE_SEQUENCE", points=0)
def kv_cache_bytes(*, layers, kv_heads, head_width, tokens, batch=1, dtype_bytes=2, tp=1):
    return 2 * layers * kv_heads // tp * head_width * tokens * dtype_bytes


@wrong("CACHE_NOT_SPLIT", points=3)
def kv_cache_bytes(*, layers, kv_heads, head_width, tokens, batch=1, dtype_bytes=2, tp=1):
    check(layers, kv_heads, head_width, tokens, batch, dtype_bytes, tp)
    return 2 * layers * kv_heads * head_width * tokens * batch * dtype_bytes


@wrong("CACHE_IN_BITS", points=0)
def kv_cache_bytes(*, layers, kv_heads, head_width, tokens, batch=1, dtype_bytes=2, tp=1):
    return 2 * layers * kv_heads // tp * head_width * tokens * batch * dtype_bytes // 8


@wrong("CACHE_IN_BITS", points=0)
def kv_cache_bytes(*, layers, kv_heads, head_width, tokens, batch=1, dtype_bytes=2, tp=1):
    return 16 * layers * kv_heads // tp * head_width * tokens * batch * dtype_bytes


@wrong("CACHE_ELEMENTS", points=0)
def kv_cache_bytes(*, layers, kv_heads, head_width, tokens, batch=1, dtype_bytes=2, tp=1):
    return 2 * layers * kv_heads // tp * head_width * tokens * batch


@wrong("CACHE_SQUARED", points=0)
def kv_cache_bytes(*, layers, kv_heads, head_width, tokens, batch=1, dtype_bytes=2, tp=1):
    return 2 * layers * kv_heads // tp * tokens * tokens * batch * dtype_bytes


@wrong("NOT_REFUSED", points=4)
def kv_cache_bytes(*, layers, kv_heads, head_width, tokens, batch=1, dtype_bytes=2, tp=1):
    return 2 * layers * kv_heads // max(tp, 1) * head_width * tokens * batch * dtype_bytes


@wrong("OTHER_ERROR", points=4)
def kv_cache_bytes(*, layers, kv_heads, head_width, tokens, batch=1, dtype_bytes=2, tp=1):
    assert kv_heads % tp == 0
    return 2 * layers * kv_heads // tp * head_width * tokens * batch * dtype_bytes


@wrong("GENERATOR", points=0)
def kv_cache_bytes(*, layers, kv_heads, head_width, tokens, batch=1, dtype_bytes=2, tp=1):
    yield 2 * layers * kv_heads // tp * head_width * tokens * batch * dtype_bytes


@wrong(says="tokens=64) returned 262144", points=0)
def kv_cache_bytes(*, layers, kv_heads, head_width, tokens, batch=1, dtype_bytes=2, tp=1):
    return 2 * layers * kv_heads * head_width * tokens / (batch * tp) * dtype_bytes * 2
