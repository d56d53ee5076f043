"""Shapes that cannot be, and names that are almost right."""

from __future__ import annotations

from dataclasses import replace

import pytest

from course.errors import UsageError
from course.spec.shape import SHAPES, shape_of


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"layers": 0}, "layers=0"),
        ({"heads": 30}, "30 heads do not divide hidden=4096: try 32"),
        ({"kv_heads": 5}, "kv_heads=5"),
        ({"ffn_matrices": 4}, "2 .* or 3"),
        ({"active_experts": 2}, "2 active experts of 1"),
        ({"positions": -1}, "positions"),
    ],
)
def test_the_impossible_is_refused(change: dict, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        replace(SHAPES["llama-3.1-8b"], **change)


def test_grouped_queries() -> None:
    assert SHAPES["llama-3.1-8b"].kv_hidden == 1024 and SHAPES["gpt-2"].kv_hidden == 768


def test_the_nearest_name_is_offered() -> None:
    with pytest.raises(UsageError, match="llama-3.1-405b"):
        shape_of("llama-405b")
