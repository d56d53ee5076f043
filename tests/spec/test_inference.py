"""The key-value cache against tensors of its shape, and the impossible."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from course.errors import UsageError
from course.spec.inference import kv_cache_bytes

few = st.integers(1, 4)


@given(layers=few, share=few, head_width=few, tokens=st.integers(0, 5), batch=few, tp=few)
def test_a_rank_keeps_keys_and_values_of_its_heads(
    layers: int, share: int, head_width: int, tokens: int, batch: int, tp: int
) -> None:
    kept = [torch.empty(batch, share, tokens, head_width, dtype=torch.bfloat16) for _ in range(2 * layers)]
    nbytes = kv_cache_bytes(
        layers=layers, kv_heads=share * tp, head_width=head_width, tokens=tokens, batch=batch, dtype_bytes=2, tp=tp
    )
    assert nbytes == sum(t.nbytes for t in kept)


def test_one_sequence_of_a_large_model() -> None:
    """80 layers, 8 key-value heads of 128: 320 KiB a token in bfloat16."""
    assert kv_cache_bytes(layers=80, kv_heads=8, head_width=128, tokens=1) == 320 * 1024


@pytest.mark.parametrize(
    ("wrong", "named"),
    [({"tp": 3}, "1, 2, 4, 8"), ({"layers": 0}, "layers"), ({"tokens": -1}, "tokens=-1"), ({"tp": 0}, "tp=0")],
)
def test_the_impossible_is_refused(wrong: dict[str, int], named: str) -> None:
    sizes = {"layers": 2, "kv_heads": 8, "head_width": 16, "tokens": 4} | wrong
    with pytest.raises(UsageError, match=named):
        kv_cache_bytes(**sizes)
