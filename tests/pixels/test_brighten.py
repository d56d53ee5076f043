"""Every way to brighten gives the same image, saturates at both ends, takes any layout and leaves its input alone."""

from __future__ import annotations

import numpy as np
import pytest

from course.errors import UsageError
from course.pixels import METHODS, brighten_swar_word

VALUES = np.arange(256, dtype=np.uint8)
GPU = "GPU"


def wanted(image: np.ndarray, amount: int) -> np.ndarray:
    return np.clip(image.astype(int) + amount, 0, 255).astype(np.uint8)


@pytest.fixture(params=METHODS)
def name(request) -> str:
    return request.param


@pytest.fixture
def brighten(name):
    return METHODS[name]


def test_all_values_and_all_amounts(name, brighten):
    amounts = (-255, -254, -128, -1, 0, 1, 127, 128, 254, 255) if name == GPU else range(-255, 256)
    for amount in amounts:
        np.testing.assert_array_equal(brighten(VALUES, amount), wanted(VALUES, amount), f"amount {amount}")


@pytest.mark.parametrize("length", [0, 1, 2, 7, 8, 9, 63, 65, 1001])
@pytest.mark.parametrize("amount", [-77, 200])
def test_any_length(brighten, length, amount):
    image = np.random.default_rng(length).integers(0, 256, length, dtype=np.uint8)
    np.testing.assert_array_equal(brighten(image, amount), wanted(image, amount))


@pytest.mark.parametrize("name", [name for name in METHODS if name != GPU])  # its simulator takes 64 x 64 at most
def test_more_than_one_tile(brighten):
    image = np.random.default_rng(0).integers(0, 256, (3, 100_003), dtype=np.uint8)
    for amount in (-100, 100):
        np.testing.assert_array_equal(brighten(image, amount), wanted(image, amount))


LAYOUTS = {
    "grey": lambda big: big[:20, :30, 0].copy(),
    "every other column": lambda big: big[:20, :30:2, 1],
    "upside down": lambda big: big[19::-1, :30, 0],
    "transposed": lambda big: big[:20, :30, 0].T,
    "Fortran": lambda big: np.asfortranarray(big[:20, :30, 0]),
    "odd address": lambda big: big.reshape(-1)[3:204],
    "RGB": lambda big: big[:20, :17, :3],
    "RGBA": lambda big: big[:20, :17],
    "no rows": lambda big: big[:0, :5, 0],
    "no pixels, RGBA": lambda big: big[:3, :0],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("amount", [-60, 90])
def test_any_layout_and_the_input_stays(brighten, layout, amount):
    big = np.random.default_rng(1).integers(0, 256, (32, 32, 4), dtype=np.uint8)
    image = LAYOUTS[layout](big)
    expected, before = wanted(image, amount), big.copy()
    if layout.endswith("RGBA"):
        expected[..., 3] = image[..., 3]
    image.flags.writeable = False
    found = brighten(image, amount)
    assert found.dtype == np.uint8 and found.shape == image.shape and found.flags.writeable
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(big, before)


def test_out_is_filled_and_given_back(brighten):
    image, out = VALUES.reshape(16, 16), np.zeros((16, 16), np.uint8)
    assert brighten(image, np.int16(9), out=out) is out
    np.testing.assert_array_equal(out, wanted(image, 9))


@pytest.mark.parametrize(
    ("image", "amount", "said"),
    [
        (VALUES.astype(np.int16), 1, "dtype int16"),
        (VALUES.astype(float), 1, "dtype float64"),
        ([1, 2], 1, "a list"),
        (np.uint8(3), 1, "a uint8"),
        (np.zeros((2, 2, 2), np.uint8), 1, r"shape \(2, 2, 2\)"),
        (np.array(3, np.uint8), 1, r"shape \(\)"),
        (VALUES, 256, "amount=256"),
        (VALUES, -256, "amount=-256"),
        (VALUES, 1.0, "amount=1.0 is a float"),
        (VALUES, True, "amount=True is a bool"),
        (VALUES, None, "amount=None"),
    ],
)
def test_a_wrong_argument_is_named(brighten, image, amount, said):
    with pytest.raises(UsageError, match=said):
        brighten(image, amount)


@pytest.mark.parametrize(
    ("out", "said"),
    [
        (np.zeros(255, np.uint8), r"uint8 of shape \(255,\)"),
        (np.zeros(256, np.int8), "int8 of shape"),
        (np.zeros(512, np.uint8)[::2], "not contiguous"),
        (VALUES, "shares memory"),
        ([0] * 256, "out is list"),
    ],
)
def test_a_wrong_out_is_named_and_left_alone(brighten, out, said):
    before = np.array(out)
    with pytest.raises(UsageError, match=said):
        brighten(VALUES, 1, out=out)
    np.testing.assert_array_equal(out, before)


def test_lanes_of_a_python_word_do_not_touch():
    rng = np.random.default_rng(2)
    for amount in range(-255, 256):
        pixels = rng.integers(0, 256, 8, dtype=np.uint8)
        word = brighten_swar_word(int.from_bytes(pixels.tobytes(), "little"), amount)
        assert word.to_bytes(8, "little") == wanted(pixels, amount).tobytes()


def test_a_word_with_a_wrong_amount_is_refused():
    with pytest.raises(UsageError, match="amount=300"):
        brighten_swar_word(0, 300)
