"""Checks of `quantize_int8` and `dequantize_int8`: scales, whole numbers, and the way back."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from course.grading.bench import Bench, Seat, Trouble
from course.grading.check import Check, Finding
from course.grading.checks.against_one import first_wrong, flat
from course.grading.checks.hello import lazy
from course.grading.checks.messages import close
from course.grading.checks.sharding import random
from course.grading.mistakes import Mistake
from course.grading.mistakes import lesson_04 as known
from course.grading.plain import TensorData, plain, type_in_words

TOLERANCE = 1e-5
ONLY_THAT_ROW = "Only the row of zeros needs another scale."


@dataclass(frozen=True, slots=True)
class Case:
    """A weight of this shape; its rows differ much in size, and every other row has its largest number below 0."""

    rows: int
    columns: int
    zeros: bool = False

    def __str__(self) -> str:
        return f"with {self.rows} rows of {self.columns}" + (", one of them zeros" if self.zeros else "")

    def weight(self) -> Any:
        import torch

        weight = random(self.rows, self.columns, seed=10 * self.rows + self.columns)
        weight = weight * torch.logspace(-3, 1, self.rows)[:, None]
        for row in range(self.rows):  # the largest one of odd rows is negative, of even rows positive
            k = int(weight[row].abs().argmax())
            weight[row, k] = weight[row, k].abs() * (-1) ** row
        if self.zeros:
            weight[1] = 0.0
        return weight

    def pair(self) -> tuple[Any, Any]:
        """What quantizing gives."""
        import torch

        weight = self.weight()
        scale = weight.abs().amax(1) / 127
        scale[scale == 0] = 1.0
        return (weight / scale[:, None]).round().to(torch.int8), scale


CASES = (Case(5, 7), Case(6, 6), Case(3, 40), Case(1, 4), Case(9, 2))
ZEROS = (Case(4, 7, zeros=True), Case(3, 3, zeros=True))
SQUARE, BACK = (Case(6, 6), Case(3, 3)), (Case(5, 7), Case(2, 30), Case(1, 4), Case(7, 3), Case(4, 7, zeros=True))


# --- there ------------------------------------------------------------------------------------------------------------


def _probe_there(learner: Any, case: Case, seat: Seat) -> Any:
    weight = case.weight()
    given = plain(weight)
    returned = learner(weight)
    return {"returned": plain(returned), "changed": plain(weight) != given}


def _there(bench: Bench, case: Case) -> Any:
    return bench.run(_probe_there, case, n=1).values[0]


def _lined_up_wrongly(trouble: Trouble, case: Case) -> Finding | None:
    """A finding where (rows,) met (rows, columns) and did not fit."""
    if trouble.kind == "raised" and "must match the size" in trouble.got:
        return Finding(f"{case}: {trouble.got}", "", "", known.BACK_COLUMNS)
    return None


def _kind(bench: Bench) -> Finding | None:
    for case in CASES:
        try:
            value = _there(bench, case)
        except Trouble as trouble:
            if finding := _lined_up_wrongly(trouble, case):
                return finding
            raise
        returned = value["returned"]
        if type(returned) not in (tuple, list) or len(returned) != 2:
            got = f"{case}, it returned {type_in_words(returned)}"
            return Finding(got, "", "Return both with one `return`.", lazy(returned))
        if finding := _pair(case, *returned):
            return finding
        if value["changed"]:
            return Finding(f"{case}, the weight was changed", "the weight as it was", "Work on a new tensor.")
    return None


def _pair(case: Case, numbers: Any, scale: Any) -> Finding | None:
    shape, rows = (case.rows, case.columns), (case.rows,)
    if type(numbers) is not TensorData or type(scale) is not TensorData:
        got = f"{case}, it returned {type_in_words(numbers)} and {type_in_words(scale)}"
        return Finding(got, "two tensors", "Return tensors.")
    got = f"{case}, it returned {type_in_words(numbers)} and {type_in_words(scale)}"
    if numbers.dtype != "int8" and scale.dtype == "int8":
        return Finding(got, "", "", known.INT8_SWAPPED)
    if numbers.dtype != "int8" or numbers.shape != shape:
        mistake = known.INT8_FLOATS if numbers.shape == shape else None
        return Finding(got, "", "The numbers have the shape of the weight.", mistake)
    if scale.shape != rows:
        found = {(): known.INT8_ONE_SCALE, (1,): known.INT8_ONE_SCALE, (case.columns,): known.INT8_COLUMNS}
        found |= {(1, 1): known.INT8_ONE_SCALE, (1, case.columns): known.INT8_COLUMNS}
        found |= {(case.rows, 1): known.INT8_KEPT_DIMENSION}
        return Finding(got, "", "How many scales are there, in how many dimensions?", found.get(scale.shape))
    if scale.dtype != "float32":
        return Finding(got, "", "The scales are float32, like the weight.")
    return None


def _scales(bench: Bench) -> Finding | None:
    for case in CASES:
        numbers, scale = _there(bench, case)["returned"]
        want = case.pair()[1]
        for row, (mine, other) in enumerate(zip(scale.numbers, flat(want), strict=True)):
            if not math.isclose(mine, other, rel_tol=TOLERANCE):
                got = f"{case}, the scale of row {row} is {mine:.4g}"
                advice = "Which number of this row is the largest, without its sign?"
                return Finding(got, f"{other:.4g}", advice, _scale_mistake(case, scale))
    return None


def _scale_mistake(case: Case, scale: TensorData) -> Mistake | None:
    weight = case.weight()
    largest = weight.abs().amax(1)
    guesses = (
        (known.INT8_ONE_SCALE, (weight.abs().max() / 127).expand(case.rows)),
        (known.INT8_BY_128, largest / 128),
        (known.INT8_NO_ABS, weight.amax(1) / 127),
        (known.INT8_OFFSET, (weight.amax(1) - weight.amin(1)) / 255),
        (known.INT8_OFFSET, (weight.amax(1) - weight.amin(1)) / 254),
        (known.INT8_INVERTED, 127 / largest),
        (known.INT8_COLUMNS, weight.abs().amax(0) / 127),
    )
    for mistake, guess in guesses:
        pairs = zip(scale.numbers, flat(guess), strict=False)
        if len(scale.numbers) == guess.numel() and all(math.isclose(a, b, rel_tol=TOLERANCE) for a, b in pairs):
            return mistake
    return None


def _rounded(bench: Bench) -> Finding | None:
    for case in CASES:
        numbers, _ = _there(bench, case)["returned"]
        scaled = flat(case.weight() / case.pair()[1][:, None])
        for mine, exact in zip(numbers.numbers, scaled, strict=True):
            if abs(mine - exact) > 0.5 + 1e-3:
                got = f"{case}, {exact:.4g} steps of its row became {mine}"
                return Finding(got, f"{round(exact)}", "", _round_mistake(case, numbers))
    return None


def _round_mistake(case: Case, numbers: TensorData) -> Mistake | None:
    weight = case.weight()
    scaled = flat(weight / case.pair()[1][:, None])
    guesses: tuple[tuple[Mistake, Callable[[float], float]], ...] = (
        (known.INT8_CUT_OFF, math.trunc),
        (known.INT8_FLOOR, math.floor),
    )
    near_whole = [abs(exact - round(exact)) < 1e-3 for exact in scaled]  # 127 itself may come out as 126.99999
    for mistake, guess in guesses:
        pairs = zip(numbers.numbers, scaled, near_whole, strict=True)
        if all(whole or mine == guess(exact) for mine, exact, whole in pairs):
            return mistake
    whole_weight = flat((weight / (weight.abs().max() / 127)).round())
    return known.INT8_ONE_SCALE if numbers.numbers == whole_weight else None


def _zero_rows(bench: Bench) -> Finding | None:
    for case in ZEROS:
        returned = _there(bench, case)["returned"]
        if type(returned) not in (tuple, list) or len(returned) != 2:
            return Finding(f"{case}, it returned {type_in_words(returned)}", "", "Return both here too.")
        if finding := _pair(case, *returned):
            return finding
        numbers, scale = returned
        row = numbers.numbers[case.columns : 2 * case.columns]
        if not (math.isfinite(scale.numbers[1]) and scale.numbers[1] > 0) or any(row):
            got = f"{case}, that row has the scale {scale.numbers[1]:.4g} and the numbers {', '.join(map(str, row))}"
            return Finding(got, "zeros, and a scale above 0", "", known.INT8_ZERO_ROW)
        others = [k for k in range(case.rows) if k != 1]
        want = flat(case.pair()[1])
        if not all(math.isclose(scale.numbers[k], want[k], rel_tol=TOLERANCE) for k in others):
            return Finding(f"{case}, the other rows have other scales than they should", "their own", ONLY_THAT_ROW)
    return None


# --- and back ---------------------------------------------------------------------------------------------------------


def _probe_back(learner: Any, case: Case, seat: Seat) -> Any:
    numbers, scale = case.pair()
    given = plain((numbers, scale))
    returned = learner(numbers, scale)
    return {"returned": plain(returned), "changed": plain((numbers, scale)) != given}


def _back(bench: Bench, cases: Sequence[Case]) -> Finding | None:
    for case in cases:
        try:
            value = bench.run(_probe_back, case, n=1).values[0]
        except Trouble as trouble:
            if finding := _lined_up_wrongly(trouble, case):
                return finding
            raise
        got = value["returned"]
        numbers, scale = case.pair()
        want = numbers.float() * scale[:, None]
        if type(got) is not TensorData or got.shape != tuple(want.shape) or got.dtype != "float32":
            mistake = _dtype_mistake(got) if type(got) is TensorData else lazy(got)
            return Finding(f"{case}, it returned {type_in_words(got)}", "", "", mistake)
        if not close(got.numbers, flat(want), TOLERANCE):
            wrong = first_wrong(got.numbers, flat(want))
            return Finding(f"{case}, the result is {wrong}", "", "", _back_mistake(case, got))
        if value["changed"]:
            return Finding(f"{case}, an argument was changed", "both as they were", "Work on a new tensor.")
    return None


def _dtype_mistake(got: TensorData) -> Mistake | None:
    if got.dtype.startswith(("int", "uint")):
        return known.BACK_INTEGERS
    return known.BACK_OTHER_DTYPE if got.dtype != "float32" else None


def _back_mistake(case: Case, got: TensorData) -> Mistake | None:
    numbers, scale = case.pair()
    floats = numbers.float()
    guesses = (
        (known.BACK_UNSCALED, floats),
        (known.BACK_DIVIDES, floats / scale[:, None]),
        (known.BACK_COLUMNS, floats * scale if case.rows == case.columns else floats),
        (known.BACK_COLUMNS, floats / scale if case.rows == case.columns else floats),
        *((known.BACK_ONE_SCALE, floats * one) for one in (scale[0], scale[-1], scale.mean(), scale.max())),
    )
    return next((mistake for mistake, guess in guesses if close(got.numbers, flat(guess), 1e-4)), None)


_KIND, _SCALES, _SAME = "int8 numbers and float32 scales", "a scale for each row", "as many rows as columns"

CHECKS = {
    "quantize_int8": (
        Check(_KIND, 2, _kind, "int8 (rows, columns) and float32 (rows,)"),
        Check(_SCALES, 2, _scales, "the largest absolute value of each row, divided by 127", needs=_KIND),
        Check("rounded to the nearest", 3, _rounded, "the nearest whole number", needs=_SCALES),
        Check("a row of zeros", 1, _zero_rows, "zeros, and a scale above 0", needs=_SCALES),
    ),
    "dequantize_int8": (
        Check(_SAME, 2, lambda bench: _back(bench, SQUARE), "float32, each row times its scale"),
        Check("other shapes", 2, lambda bench: _back(bench, BACK), "the same"),
    ),
}
