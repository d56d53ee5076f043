"""Which sample goes to which rank: squares in the order of the data set, each with its rank's number and colour.

The shares come from outside; nothing is dealt here.
"""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from course.figures.page import BLUE, GREEN, ORANGE, PINK, SKY, VERMILION, PageAxes, Table, page_axes

RANK_COLOURS = (SKY, ORANGE, GREEN, PINK, "#F0E442", VERMILION, BLUE, "#999999")
IN_A_ROW = 25
MOST_LISTED = 12
LEGEND = "One box a sample, in order 0, 1, 2…; the number in it is the rank that takes it."


def rank_colour(rank: int) -> str:
    """One of eight colours; every square carries the rank's number too, so the ninth rank may share one."""
    return RANK_COLOURS[rank % len(RANK_COLOURS)]


def owners(n: int, shares: Sequence[Sequence[int]]) -> list[list[int]]:
    """For each of n samples the ranks that got it: one rank in a partition, none or several where the rule is wrong."""
    found: list[list[int]] = [[] for _ in range(n)]
    for rank, share in enumerate(shares):
        for sample in share:
            if 0 <= sample < n:
                found[sample].append(rank)
    return found


def judge_shares(n: int, shares: Sequence[Sequence[int]]) -> str:
    """One sentence: whether every sample went to exactly one rank, and if not, which did not."""
    found = owners(n, shares)
    outside = sorted({sample for share in shares for sample in share if not 0 <= sample < n})
    twice = [sample for sample, ranks in enumerate(found) if len(ranks) > 1]
    left = [sample for sample, ranks in enumerate(found) if not ranks]
    if not (outside or twice or left):
        return f"All {n} samples are dealt, each to one rank."
    parts = [(twice, "dealt more than once"), (left, "left out"), (outside, "not in the data set")]
    return "; ".join(f"{_some(samples)} {words}" for samples, words in parts if samples) + "."


def shards_table(n: int, shares: Sequence[Sequence[int]]) -> Table:
    """How many samples each rank has, and which come first."""
    rows = tuple((str(rank), str(len(share)), _some(share) or "none") for rank, share in enumerate(shares))
    return Table(("rank", "samples", "in this order"), rows, judge_shares(n, shares))


def draw_shards(n: int, shares: Sequence[Sequence[int]], *, ax: Axes | None = None) -> Axes:
    """Axes with n squares, sample 0 top left; the number in a square is the rank that gets it ('–': nobody)."""
    rows = -(-n // IN_A_ROW) if n else 1
    if ax is None:
        ax = page_axes(9.0, 1.1 + 0.36 * rows)
    for sample, ranks in enumerate(owners(n, shares)):
        row, column = divmod(sample, IN_A_ROW)
        colour = rank_colour(ranks[0]) if ranks else "white"
        ax.add_patch(Rectangle((column - 0.46, row - 0.46), 0.92, 0.92, facecolor=colour, edgecolor="black", lw=0.5))
        label = "+".join(map(str, ranks)) if ranks else "–"
        ax.text(column, row, label, ha="center", va="center", fontsize=9)
    ax.set_xlim(-0.6, IN_A_ROW - 0.4)
    ax.set_ylim(rows - 0.4, -0.6)
    ax.set_aspect("equal")
    ax.set_xticks(range(0, IN_A_ROW, 5))
    ax.set_yticks(range(rows), [str(row * IN_A_ROW) for row in range(rows)])
    ax.set_xlabel(f"sample number (row start + column)\n{LEGEND}")
    if isinstance(ax, PageAxes):
        ax.heading = f"{n} samples over {len(shares)} ranks"
        sizes = ", ".join(f"rank {rank} {len(share)}" for rank, share in enumerate(shares))
        ax.description, ax.table = f"{judge_shares(n, shares)} Samples: {sizes}.", shards_table(n, shares)
    return ax


def _some(samples: Sequence[int]) -> str:
    text = ", ".join(map(str, samples[:MOST_LISTED]))
    return f"{text}, … ({len(samples)} in all)" if len(samples) > MOST_LISTED else text
