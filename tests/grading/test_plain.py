"""Plain data: what counts as a result, and how two of them are compared."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from course.grading.plain import (
    ArrayData,
    Foreign,
    Scalar,
    TensorData,
    difference,
    plain,
    ratio,
    real_number,
    same,
    type_in_words,
    whole_numbers,
)


class Agreeable:
    def __eq__(self, other: object) -> bool:
        return True

    def __float__(self) -> float:
        return 1.0

    __hash__ = object.__hash__


class Loud(int):
    pass


class Odd(torch.Tensor):
    pass


def test_builtin_data_stays_as_it_is() -> None:
    data = {"a": [1, 2.5, None, (True, "x")], 3: {4, 5}}
    assert plain(data) == data


def test_an_object_that_equals_everything_equals_nothing() -> None:
    assert plain(Agreeable()) == Foreign("Agreeable")
    assert plain([1, Agreeable()]) != [1, 2]
    assert real_number(plain(Agreeable())) is None


def test_what_a_probe_has_made_plain_stays_and_what_only_looks_so_is_foreign() -> None:
    made = plain([torch.ones(2), np.ones(2), np.int64(1), iter(())])
    assert plain(made) == made
    assert plain(ArrayData("uint8", (1,), (Agreeable(),))) == Foreign("ArrayData")  # type: ignore[arg-type]
    assert plain(Scalar("int64", Agreeable())) == Foreign("Scalar")  # type: ignore[arg-type]


def test_subclasses_are_foreign() -> None:
    assert plain(Loud(3)) == Foreign("Loud")
    assert plain(Odd([1.0])) == Foreign("Odd")


def test_generators_and_coroutines_are_named() -> None:
    assert type_in_words(plain(x for x in ())) == "a generator"


def test_tensors_are_taken_apart() -> None:
    data = plain(torch.tensor([[1, 2], [3, 4]], dtype=torch.int64))
    assert data == TensorData("int64", (2, 2), "cpu", (1, 2, 3, 4))
    assert plain(torch.nn.Parameter(torch.ones(1))).numbers == (1.0,)
    assert plain(plain(torch.ones(2))) == plain(torch.ones(2))


def test_arrays_are_taken_apart() -> None:
    image = np.arange(6, dtype=np.uint8).reshape(2, 3)
    assert plain(image[:, ::-1]) == ArrayData("uint8", (2, 3), (2, 1, 0, 5, 4, 3))
    assert plain(np.empty((0, 3))) == ArrayData("float64", (0, 3), ())
    assert type_in_words(plain(image)) == "a uint8 array of shape (2, 3)"


@pytest.mark.parametrize("value", [np.array([Agreeable()]), np.ma.array([1]), np.array([1j]), np.array("x")])
def test_other_arrays_are_foreign(value: object) -> None:
    assert plain(value) == Foreign(type(value).__name__)


def test_a_dtype_makes_a_difference() -> None:
    assert plain(torch.ones(2)) != plain(torch.ones(2, dtype=torch.float64))


def test_nesting_ends() -> None:
    loop: list[object] = []
    loop.append(loop)
    assert "Foreign" in repr(plain(loop))


@pytest.mark.parametrize(
    "value", [[1, 2], (1, 2), torch.tensor([1, 2]), np.array([1, 2]).tolist(), list(np.array([1, 2]))]
)
def test_whole_numbers_are_read_from_lists_and_tensors(value: object) -> None:
    assert whole_numbers(plain(value)) == [1, 2]


@pytest.mark.parametrize("value", [range(2), "12", [1.0, 2.0], [True], [[1]], None, torch.tensor([1.5]), {1, 2}])
def test_anything_else_holds_no_whole_numbers(value: object) -> None:
    assert whole_numbers(plain(value)) is None


@pytest.mark.parametrize(
    "value", [2, 2.0, np.float32(2), np.int64(2), torch.tensor(2.0), torch.tensor([2]), np.array(2), np.array([2.0])]
)
def test_real_numbers(value: object) -> None:
    assert real_number(plain(value)) == 2.0


@pytest.mark.parametrize("value", [True, "2", None, [2.0], torch.ones(2), np.bool_(True)])
def test_no_real_numbers(value: object) -> None:
    assert real_number(plain(value)) is None


def test_numpy_numbers_keep_their_type_for_the_sentence() -> None:
    assert plain(np.int64(3)) == Scalar("int64", 3)
    assert type_in_words(plain(np.int64(3))) == "a numpy int64"


def test_another_order_of_additions_is_the_same() -> None:
    third = [1 / 3, 2 / 3, 1.0]
    assert same({"w": [float(torch.tensor(x).item()) for x in third]}, {"w": third})


def test_a_small_but_real_difference_is_seen() -> None:
    assert not same({"w": [1.0, 1.001]}, {"w": [1.0, 1.0]})
    assert not same({"w": [float("nan")]}, {"w": [1.0]})
    found = difference({"w": [1.0, 3.0], "b": [0.0]}, {"w": [1.0, 2.0], "b": [0.5]})
    assert found is not None and (found.worst, found.got, found.want) == ("b", 0.0, 0.5)


def test_the_ratio_is_one_factor_for_all() -> None:
    want = {"w": [1.0, -2.0], "b": [0.5], "zero": [0.0]}
    assert ratio({"w": [4.0, -8.0], "b": [2.0], "zero": [0.0]}, want) == pytest.approx(4.0)
    assert ratio({"w": [4.0, -8.0], "b": [1.5], "zero": [0.0]}, want) is None
    assert ratio({"w": [4.0, 8.0], "b": [2.0], "zero": [0.0]}, want) is None
    assert ratio({"w": [float("inf"), 0.0], "b": [2.0], "zero": [0.0]}, want) is None
