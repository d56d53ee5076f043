"""Cut matrices: what is said to be sent is what the arithmetic of the parts needs, and pictures say what tables say."""

from __future__ import annotations

import itertools
import random

import pytest

from course.errors import UsageError
from course.figures import draw_tensor
from course.figures.tensor import HIDDEN, TOKENS, WAYS, WIDTH, Cut, equal_cuts


def random_cuts(rng, n, first, second):
    sizes = (HIDDEN if first == "columns" else WIDTH, HIDDEN if second == "rows" else WIDTH)
    return [sorted(rng.sample(range(1, size), n - 1)) for size in sizes]


def owners(parts):
    return [rank for rank, (start, stop) in enumerate(parts) for _ in range(stop - start)]


@pytest.mark.parametrize(("first", "second"), list(itertools.product(WAYS, WAYS)))
@pytest.mark.parametrize("n", [2, 3, 4])
def test_every_weight_is_on_one_rank(n, first, second):
    rng = random.Random(n)
    for _ in range(20):
        cut = Cut(n, first, second, *random_cuts(rng, n, first, second))
        assert sum(cut.held) == 2 * WIDTH * HIDDEN and min(cut.held) > 0
        for matrix in "AB":
            bands = [band for band in cut.bands if band.matrix == matrix]
            assert [band.rank for band in bands] == list(range(n))
            assert sum(band.width * band.height for band in bands) == WIDTH * HIDDEN
        per_rank = [sum(b.width * b.height for b in cut.bands if b.rank == r and b.matrix in "AB") for r in range(n)]
        assert per_rank == cut.held


@pytest.mark.parametrize("n", [2, 3, 4])
def test_columns_that_change_hands_are_counted_one_by_one(n):
    rng = random.Random(n)
    for _ in range(50):
        cut = Cut(n, "columns", "rows", *random_cuts(rng, n, "columns", "rows"))
        differ = sum(a != b for a, b in zip(owners(cut.a_parts), owners(cut.b_parts), strict=True))
        assert cut.moved == differ
        assert cut.exchanges[1].forward_elements == cut.exchanges[1].backward_elements == differ * TOKENS


@pytest.mark.parametrize("n", [2, 3, 4])
def test_columns_then_rows_at_the_same_places_send_least(n):
    best = Cut(n).sent
    assert best == (2 * (n - 1) * TOKENS * WIDTH,) * 2  # an all-reduce each way
    for first, second in itertools.product(WAYS, WAYS):
        if (first, second) != ("columns", "rows"):
            assert sum(Cut(n, first, second).sent) > sum(best)
    assert Cut(n, a_cuts=[1, 2, 3][: n - 1]).sent > best


@pytest.mark.parametrize(
    ("first", "second", "sent"),
    [
        ("columns", "columns", ["all-reduce", "all-gather", "reduce-scatter", "all-gather"]),
        ("rows", "rows", ["all-gather", "all-reduce", "all-gather", "all-reduce"]),
        ("rows", "columns", ["all-gather", "all-reduce", "all-reduce", "all-gather"]),
    ],
)
def test_other_cuts_name_what_they_send(first, second, sent):
    before, between, after = Cut(3, first, second).exchanges
    assert [before.backward, between.forward, between.backward, after.forward] == sent
    assert before.forward == after.backward == "–"


def test_the_picture_has_a_rectangle_a_part_and_the_words_of_the_table():
    cut = Cut(4, "rows", "columns")
    ax = draw_tensor(cut)
    assert len(ax.patches) == len(list(cut.bands)) == 4 + 4 + 1 + 1 + 4
    written = {text.get_text() for text in ax.texts}
    assert {"0", "1", "2", "3", "all", "A by rows", "B by columns", "g(x A) on all", "y in columns"} <= written
    for row in cut.sends.rows:
        assert all(cell in ax.get_xlabel() for cell in row)
    assert ax.table.rows == cut.table.rows and ax.description == cut.sentence
    assert ax.heading == "two matrices cut over 4 ranks: A by rows, B by columns"


def test_equal_cuts_are_torchs():
    assert equal_cuts(10, 4) == (3, 6, 8) and equal_cuts(8, 2) == (4,)


@pytest.mark.parametrize(
    "wrong",
    [
        {"n": 1},
        {"n": 5},
        {"first": "blocks"},
        {"second": None},
        {"a_cuts": [0]},
        {"a_cuts": [HIDDEN]},
        {"a_cuts": [1, 2]},
        {"a_cuts": [True]},
        {"b_cuts": [2.0]},
        {"n": 3, "b_cuts": [5, 5]},
    ],
)
def test_a_cut_that_cannot_be_is_refused(wrong):
    with pytest.raises(UsageError, match=r"ranks go from 2 to 4|try \[\d+"):
        Cut(**wrong)
