"""compare and checksum: they must say no when something is off, and by what factor."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from course.errors import UsageError
from course.lesson import checksum, compare

finite = st.floats(-1e6, 1e6, allow_nan=False)


@given(st.lists(finite, min_size=1, max_size=8))
def test_anything_agrees_with_itself_to_the_bit(values):
    found = compare(values, list(values), tolerance=0)
    assert found and found.worst == 0 and "equal to the bit" in repr(found)


@given(st.lists(st.floats(0.1, 1e6), min_size=1, max_size=8), st.floats(1.01, 50))
def test_a_constant_factor_is_named(values, factor):
    found = compare([v * factor for v in values], values)
    assert not found
    assert found.ratio == pytest.approx(factor, rel=1e-3)
    assert f"{found.ratio:.2f} times everywhere" in repr(found)


def test_forgotten_division_reads_two_even_with_zeros_and_both_signs():
    gradient = torch.tensor([[0.5, -3.0], [0.0, 1e-4]])
    found = compare([gradient * 2, torch.tensor(4.0)], [gradient, 2.0])
    assert repr(found).startswith("DIFFER: 2.00 times everywhere")


def test_a_difference_without_a_factor_names_none():
    found = compare([torch.tensor([1.0, 2.0])], [torch.tensor([2.0, 1.0])])
    assert not found and found.ratio is None and "times" not in repr(found)


def test_a_factor_that_holds_in_one_part_only_is_not_everywhere():
    assert compare({"w": [2.0], "b": [3.0]}, {"w": [1.0], "b": [3.0]}).ratio is None


def test_the_worst_part_is_named():
    found = compare({"a": [1.0, 1.0], "b": torch.tensor([1.0, 2.0])}, {"a": [1.0, 1.1], "b": torch.tensor([1.0, 3.0])})
    assert found.where == "['b']" and found.worst == pytest.approx(1 / 3)


def test_a_zero_among_large_numbers_is_measured_by_them():
    assert compare(torch.tensor([1.0, 1e-9]), torch.tensor([1.0, 0.0]))
    assert not compare(1e-9, 0.0)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_not_a_number_never_agrees(bad):
    assert not compare([bad, 1.0], [1.0, 1.0], tolerance=1e9)
    assert not compare(torch.tensor([math.nan]), torch.tensor([math.nan]), tolerance=1e9)


def test_equal_infinities_agree():
    assert compare([math.inf, 1.0], [math.inf, 1.0])


def test_numpy_and_torch_and_numbers_mix():
    assert compare([np.float32(0.5), torch.tensor([1.0, 2.0], dtype=torch.bfloat16)], (0.5, np.array([1.0, 2.0])))


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        ([1.0], [1.0, 2.0], "1 parts and the other 2"),
        (torch.zeros(3), torch.zeros(4), r"shape \(3,\)"),
        ({"a": 1}, {"b": 1}, "'a' is on one side only"),
        ("loss", "loss", "got str"),
        ([], [], "two empty results"),
    ],
)
def test_what_cannot_be_compared_is_said(a, b, words):
    with pytest.raises(UsageError, match=words):
        compare(a, b)


def test_checksum_sees_one_bit_of_a_parameter_and_of_a_buffer():
    module = nn.BatchNorm1d(3)
    before = checksum(module)
    with torch.no_grad():
        module.weight[1] = torch.nextafter(module.weight[1], torch.tensor(2.0))
    after = checksum(module)
    module.running_mean[0] = 1e-30
    assert len({before, after, checksum(module)}) == 3


def test_checksum_of_minus_zero_differs_and_gradients_do_not_count():
    zero, minus = nn.Parameter(torch.zeros(1)), nn.Parameter(-torch.zeros(1))
    assert checksum(zero) != checksum(minus)
    module = nn.Linear(2, 2)
    before = checksum(module)
    module(torch.ones(1, 2)).sum().backward()
    assert checksum(module) == before


def test_a_wrapped_module_has_the_checksum_of_the_one_inside():
    inner = nn.Linear(3, 2)
    assert checksum(nn.Sequential(inner)) == checksum(inner)


def test_checksum_takes_views_other_dtypes_and_scalars():
    strided = torch.arange(6.0).reshape(2, 3).t()
    assert checksum(strided) == checksum(strided.contiguous())
    assert checksum(torch.tensor(1.0, dtype=torch.bfloat16)) != checksum(torch.tensor(1.0, dtype=torch.float16))


def test_checksum_of_something_else_is_refused():
    with pytest.raises(UsageError, match="got list"):
        checksum([1, 2])
