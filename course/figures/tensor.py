"""Two matrix products cut over ranks, y = g(x A) B: who holds which rows and columns, and what has to be sent.

The counting stands in `Cut`, which both the picture and the table read; g works on each element alone. Here x is
(4, 8), A (8, 32) and B (32, 8): a small MLP. Nothing is multiplied.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from course.errors import UsageError
from course.figures.page import PageAxes, Table, page_axes
from course.figures.shards import rank_colour

TOKENS, WIDTH, HIDDEN = 4, 8, 32
WAYS = ("columns", "rows")
FEWEST, MOST = 2, 4
GAP = 5
WHOLE = "#e4e4e4"
LEGEND = "A number names the rank that holds the part; grey: the same on all ranks."


@dataclass(frozen=True, slots=True)
class Exchange:
    """What is sent at one place of the product; elements as all ranks together send them, over rings."""

    place: str
    forward: str
    backward: str
    forward_elements: int = 0
    backward_elements: int = 0


@dataclass(frozen=True, slots=True)
class Band:
    """A rectangle of one matrix: its corner, size (in elements), the rank that holds it (None: all) and its words."""

    matrix: str
    left: float
    top: float
    width: float
    height: float
    rank: int | None
    words: str


def equal_cuts(size: int, n: int) -> tuple[int, ...]:
    """Where `size` rows or columns are cut into n parts; the first are bigger by one."""
    return tuple(i * (size // n) + min(i, size % n) for i in range(1, n))


class Cut:
    """A cut of both matrices: first and second are "columns" or "rows", a_cuts and b_cuts n - 1 places each.

    Columns of A and rows of B are cut between 0 and HIDDEN, rows of A and columns of B between 0 and WIDTH. Every rank
    keeps at least one. Raises UsageError. a_cuts, b_cuts: None for equal parts.
    """

    def __init__(
        self,
        n: int = 2,
        first: str = "columns",
        second: str = "rows",
        a_cuts: Sequence[int] | None = None,
        b_cuts: Sequence[int] | None = None,
    ) -> None:
        if n not in range(FEWEST, MOST + 1) or first not in WAYS or second not in WAYS:
            raise UsageError(
                f"a cut over {n!r} ranks by {first!r} and {second!r}: ranks go from {FEWEST} to {MOST}, "
                f"each matrix is cut by {' or '.join(WAYS)}"
            )
        self.n, self.first, self.second = n, first, second
        self.a_size = HIDDEN if first == "columns" else WIDTH
        self.b_size = HIDDEN if second == "rows" else WIDTH
        self.a_cuts = _checked("A", a_cuts, self.a_size, n)
        self.b_cuts = _checked("B", b_cuts, self.b_size, n)

    @property
    def a_parts(self) -> list[tuple[int, int]]:
        """(start, stop) in A of each rank."""
        return list(pairwise((0, *self.a_cuts, self.a_size)))

    @property
    def b_parts(self) -> list[tuple[int, int]]:
        """(start, stop) in B of each rank."""
        return list(pairwise((0, *self.b_cuts, self.b_size)))

    @property
    def held(self) -> list[int]:
        """Weights of each rank, of A and B together."""
        across_a, across_b = ACROSS[self.first][0], ACROSS[self.second][1]
        parts = zip(self.a_parts, self.b_parts, strict=True)
        return [(a[1] - a[0]) * across_a + (b[1] - b[0]) * across_b for a, b in parts]

    @property
    def moved(self) -> int:
        """Columns of g(x A) that one rank makes and another needs, where A is cut by columns and B by rows."""
        parts = zip(self.a_parts, self.b_parts, strict=True)
        return HIDDEN - sum(max(0, min(a[1], b[1]) - max(a[0], b[0])) for a, b in parts)

    @property
    def exchanges(self) -> tuple[Exchange, Exchange, Exchange]:
        """What is sent before A, between the two and after B: forward, and backward in the other direction."""
        x, y, once = TOKENS * WIDTH, TOKENS * WIDTH, self.n - 1
        if self.first == "columns":
            before = Exchange("x → A", "–", "all-reduce", 0, 2 * once * x)
        else:
            before = Exchange("x → A", "–", "all-gather", 0, once * x)
        if self.second == "rows":
            after = Exchange("B → y", "all-reduce", "–", 2 * once * y, 0)
        else:
            after = Exchange("B → y", "all-gather", "–", once * y, 0)
        return before, self._between(), after

    def _between(self) -> Exchange:
        place, h, once = "A → g → B", TOKENS * HIDDEN, self.n - 1
        match self.first, self.second:
            case "columns", "rows" if not self.moved:
                return Exchange(place, "–", "–")
            case "columns", "rows":
                words = f"move {self.moved} columns"
                return Exchange(place, words, words, TOKENS * self.moved, TOKENS * self.moved)
            case "columns", _:
                return Exchange(place, "all-gather", "reduce-scatter", once * h, once * h)
            case _, "rows":
                return Exchange(place, "all-reduce", "all-gather", 2 * once * h, once * h)
        return Exchange(place, "all-reduce", "all-reduce", 2 * once * h, 2 * once * h)

    @property
    def sent(self) -> tuple[int, int]:
        """Elements that all ranks together send: (forward, backward)."""
        return sum(e.forward_elements for e in self.exchanges), sum(e.backward_elements for e in self.exchanges)

    @property
    def sentence(self) -> str:
        """Where it stands, in words."""
        between = self.exchanges[1]
        if between.forward == "–":
            middle = "Nothing is sent between A and B"
        elif self.first == "rows":
            middle = "x A is a sum over ranks, and g of a sum is not the sum of g: it must be added up first"
        elif self.second == "columns":
            middle = "Every column of B needs all of g(x A)"
        else:
            middle = "The cuts differ, so some columns change hands"
        forward, backward = self.sent
        most, all_of = max(self.held), 2 * WIDTH * HIDDEN
        return (
            f"{middle}. Sent by all ranks: {forward} elements forward, {backward} backward. "
            f"The fullest rank holds {most} of {all_of} weights."
        )

    @property
    def table(self) -> Table:
        """One row a rank: what it holds."""
        named_a = "A[:, {}:{}]" if self.first == "columns" else "A[{}:{}, :]"
        named_b = "B[{}:{}, :]" if self.second == "rows" else "B[:, {}:{}]"
        parts = zip(self.a_parts, self.b_parts, self.held, strict=True)
        rows = tuple((str(r), named_a.format(*a), named_b.format(*b), str(h)) for r, (a, b, h) in enumerate(parts))
        return Table(("rank", "holds of A", "holds of B", "weights"), rows, self.sentence)

    @property
    def sends(self) -> Table:
        """One row a place: what is sent there, forward and backward."""
        rows = tuple(
            (e.place, _counted(e.forward, e.forward_elements), _counted(e.backward, e.backward_elements))
            for e in self.exchanges
        )
        return Table(("where", "forward", "backward"), rows)

    @property
    def bands(self) -> Iterator[Band]:
        """The rectangles of x, A, g(x A), B and y from left to right, in elements; top 0 is the upper edge."""
        left = 0.0
        a_words, b_words = f"A by {self.first}", f"B by {self.second}"
        h = self.a_parts if self.first == "columns" else None
        y = self.b_parts if self.second == "columns" else None
        for matrix, words, height, width, parts, by_rows in (
            ("x", "x on all", TOKENS, WIDTH, None, False),
            ("A", a_words, WIDTH, HIDDEN, self.a_parts, self.first == "rows"),
            ("h", "g(x A) in columns" if h else "g(x A) on all", TOKENS, HIDDEN, h, False),
            ("B", b_words, HIDDEN, WIDTH, self.b_parts, self.second == "rows"),
            ("y", "y in columns" if y else "y, a sum", TOKENS, WIDTH, y, False),
        ):
            top = (HIDDEN - height) / 2
            if parts is None:
                yield Band(matrix, left, top, width, height, None, words)
            for rank, (start, stop) in enumerate(parts or ()):
                size = stop - start
                if by_rows:
                    yield Band(matrix, left, top + start, width, size, rank, words)
                else:
                    yield Band(matrix, left + start, top, size, height, rank, words)
            left += width + GAP


ACROSS = {"columns": (WIDTH, HIDDEN), "rows": (HIDDEN, WIDTH)}
"""Weights in one column or row: (of A, of B)."""


def draw_tensor(cut: Cut | None = None, *, ax: Axes | None = None) -> Axes:
    """Axes with x, A, g(x A), B and y side by side, each part with its rank, and what is sent as words below."""
    cut = Cut() if cut is None else cut
    if ax is None:
        ax = page_axes(9.0, 4.4)
    named = set()
    for band in cut.bands:
        colour = WHOLE if band.rank is None else rank_colour(band.rank)
        size = (band.left, band.top), band.width, band.height
        ax.add_patch(Rectangle(*size, facecolor=colour, edgecolor="black", lw=0.7))
        label = "all" if band.rank is None else str(band.rank)
        middle = band.left + band.width / 2, band.top + band.height / 2
        ax.text(*middle, label, ha="center", va="center", fontsize=9)
        if band.matrix not in named:
            ax.text(band.left, band.top - 0.7, band.words, fontsize=9, va="bottom")
        named.add(band.matrix)
    ax.set_xlim(-0.5, 3 * WIDTH + 2 * HIDDEN + 4 * GAP + 2.5)
    ax.set_ylim(HIDDEN + 0.5, -2.2)
    ax.set_aspect("equal")
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_frame_on(False)
    lines = [f"{place}:  forward {forward},  backward {backward}" for place, forward, backward in cut.sends.rows]
    ax.set_xlabel("\n".join([*lines, *cut.sentence.split(". "), LEGEND]), fontsize=9, loc="left")
    if isinstance(ax, PageAxes):
        ax.heading = f"two matrices cut over {cut.n} ranks: A by {cut.first}, B by {cut.second}"
        ax.description, ax.table = cut.sentence, cut.table
    return ax


def _counted(words: str, elements: int) -> str:
    return f"{words}: {elements}" if elements else words


def _checked(name: str, cuts: Sequence[int] | None, size: int, n: int) -> tuple[int, ...]:
    """The cuts as a tuple, equal ones for None. Raises UsageError where they leave a rank without a part."""
    if cuts is None:
        return equal_cuts(size, n)
    places = (0, *cuts, size)
    whole = all(isinstance(place, int) and not isinstance(place, bool) for place in places)
    if len(cuts) != n - 1 or not whole or any(b <= a for a, b in pairwise(places)):
        raise UsageError(
            f"{name} cut at {list(cuts)}: {n} ranks need {n - 1} whole numbers, rising, between 0 and {size}; "
            f"try {list(equal_cuts(size, n))}"
        )
    return tuple(cuts)
