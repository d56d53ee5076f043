"""The brightness slider follows its controls, names a way that is wrong, says the same in text; so does its figure."""

from __future__ import annotations

import base64
import io
import re

import numpy as np
import pytest
from PIL import Image

from course.errors import UsageError
from course.figures.brightness import describe_brightness, draw_brightness, draw_timings, timings_table
from course.pixels import brighten_numpy, brighten_python, photograph
from course.widgets.brightness import BrightnessSlider

SMALL = photograph()[::10, ::10]
WAYS = {"NumPy": brighten_numpy, "loop": brighten_python}
TIMINGS = {"memcpy": (1_000_000, 1e-4), "loop": (1_000, 2e-4)}


def controls(slider):
    return slider.children[0].children


def shown(slider) -> np.ndarray:
    data = re.search(r"base64,([^\"]+)", slider._picture.value)[1]
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))


def test_slider_and_field_move_the_amount_and_the_picture():
    slider = BrightnessSlider(SMALL, WAYS)
    for control, amount in zip(controls(slider), (90, -120), strict=True):
        control.value = amount
        assert slider.amount == amount and {control.value for control in controls(slider)} == {amount}
        np.testing.assert_array_equal(shown(slider), brighten_numpy(SMALL, amount))
    slider.amount = 7
    assert [control.value for control in controls(slider)] == [7, 7]
    slider.amount = 999
    assert slider.amount == 255 and slider.brightened.min() == 255


def test_each_way_is_timed_and_its_speed_is_in_the_table():
    slider = BrightnessSlider(SMALL, WAYS)
    assert set(slider.timings) == set(WAYS)
    for name, _, _, speed in slider.table().rows:
        pixels, seconds = slider.timings[name]
        assert pixels == SMALL.size and float(speed) == pytest.approx(2 * pixels / seconds / 1e9, rel=0.01)
        assert name in slider._below.value


def test_text_tells_the_picture_and_no_times():
    slider = BrightnessSlider(SMALL, WAYS, amount=60)
    assert repr(slider) == repr(BrightnessSlider(SMALL, WAYS, amount=60))
    assert repr(slider).startswith("BrightnessSlider(amount=60): NumPy, loop\nMean brightness")
    assert repr(slider).endswith("All ways give the same picture.")
    assert slider._repr_mimebundle_()["text/plain"] == repr(slider)


def spoil(image, amount):
    image += 1
    return image


@pytest.mark.parametrize(
    ("way", "said"),
    [
        (lambda image, amount: image + np.uint8(amount), "mine gives another picture than NumPy"),
        (lambda image, amount: image[0], "mine gives no uint8 picture of the same shape"),
        (lambda image, amount: None, "mine gives no uint8 picture of the same shape"),
        (lambda image, amount: 1 / 0, "mine raised ZeroDivisionError"),
        (spoil, "mine raised ValueError"),
    ],
)
def test_a_wrong_way_is_named_and_the_rest_works(way, said):
    slider = BrightnessSlider(SMALL, {"NumPy": brighten_numpy, "mine": way})
    assert said in slider.verdict and said in slider._below.value
    np.testing.assert_array_equal(shown(slider), brighten_numpy(SMALL, 60))
    alone = BrightnessSlider(SMALL, {"mine": lambda image, amount: 1 / 0})
    assert "ZeroDivisionError" in repr(alone)
    np.testing.assert_array_equal(alone.brightened, SMALL)


@pytest.mark.parametrize(
    ("image", "ways", "said"),
    [(SMALL.astype(float), WAYS, "uint8"), ([1], WAYS, "uint8"), (SMALL, {}, "by name"), (SMALL, {"a": 3}, "by name")],
)
def test_wrong_arguments_are_refused(image, ways, said):
    with pytest.raises(UsageError, match=said):
        BrightnessSlider(image, ways)


def test_the_figure_holds_both_pictures():
    slider = BrightnessSlider(SMALL, WAYS)
    (drawn,) = slider.figure().get_images()
    np.testing.assert_array_equal(drawn.get_array(), np.concatenate([SMALL, slider.brightened], axis=1))
    assert slider.figure().description == describe_brightness(SMALL, slider.brightened)


def test_the_words_count_what_sits_at_either_end():
    before, after = np.full((1, 4), 100, np.uint8), np.array([[0, 255, 255, 100]], np.uint8)
    assert describe_brightness(before, after) == "Mean brightness 100 before, 152 after; 25.0% at 0, 50.0% at 255."
    assert draw_brightness(before, after, TIMINGS).table.rows == timings_table(TIMINGS).rows


def test_bars_are_nanoseconds_a_pixel_in_the_given_order():
    ax = draw_timings(TIMINGS)
    assert [bar.get_width() for bar in ax.patches] == pytest.approx([0.1, 200])
    assert [label.get_text() for label in ax.get_yticklabels()] == ["memcpy", "loop"]
    assert [text.get_text() for text in ax.texts] == ["20 GB/s", "0.01 GB/s"]
    assert "nanoseconds a pixel" in ax.get_xlabel() and ax.yaxis_inverted()


def test_the_table_compares_a_pixel_with_a_pixel():
    assert timings_table(TIMINGS).rows[1] == ("loop", "1,000", "200 µs", "0.01", "2,000")
    assert len(timings_table({"loop": (1_000, 2e-4)}).rows[0]) == 4
