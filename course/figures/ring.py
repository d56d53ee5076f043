"""An all-reduce round by round: who holds which sums (one step), and who sends when (ring, tree and naive together).

The rounds come from `spec.collective`; only places, colours and words are made here.
"""

from __future__ import annotations

from itertools import accumulate, chain

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from course.errors import UsageError
from course.figures.page import BLUE, ORANGE, PageAxes, Table, page_axes
from course.spec import Send, after_round, all_reduce_rounds, start_holdings

ALGORITHMS = ("ring", "tree", "naive")
MOST_NAMED = 4  # ranks written out in a sum
LEGEND = "A cell names the ranks whose part is in its sum (all: finished); a bold frame travels next."
PALE, FINISHED = ("#ffffff", "#d9ecf7", "#b3d9ef", "#8cc5e6"), ORANGE


def sum_text(parts: frozenset[int], n: int) -> str:
    """Whose parts are in a sum: '0+3', '5 of 8', 'all'."""
    if len(parts) == n:
        return "all"
    return "+".join(map(str, sorted(parts))) if len(parts) <= MOST_NAMED else f"{len(parts)} of {n}"


def sum_colour(parts: frozenset[int], n: int) -> str:
    """White for a rank's own part, darker with every part added, orange when it is finished."""
    return FINISHED if len(parts) == n else PALE[(len(parts) - 1) * len(PALE) // n]


class Step:
    """One step of one algorithm on n ranks: what is held after `step` rounds, what is sent next, what it cost so far.

    rounds: all of them. holdings[rank][chunk]: the ranks whose part is in it. sends: the next round, none at the end.
    messages: so far. most: the largest number of bytes that one rank has sent so far, in units of S, the tensor.
    """

    def __init__(self, n: int, algorithm: str, step: int) -> None:
        rounds = all_reduce_rounds(n, algorithm)
        if not 0 <= step <= len(rounds):
            raise UsageError(f"step {step} of a {algorithm} all-reduce on {n} ranks: there are {len(rounds)} rounds")
        self.n, self.algorithm, self.step, self.rounds = n, algorithm, step, rounds
        *_, self.holdings = accumulate(rounds[:step], after_round, initial=start_holdings(n))
        self.sends: tuple[Send, ...] = rounds[step] if step < len(rounds) else ()
        done = list(chain.from_iterable(rounds[:step]))
        self.messages = len(done)
        self.most = max(sum(len(send.chunks) for send in done if send.src == rank) / n for rank in range(n))

    @property
    def sentence(self) -> str:
        """Where it stands, in words."""
        sent = f"{self.messages} messages so far, at most {self.most:.2f} S from one rank"
        if not self.sends:
            return f"{self.algorithm}: done after {len(self.rounds)} rounds. Every rank holds every sum; {sent}."
        what = "add what comes" if self.sends[0].adds else "keep what comes"
        return f"{self.algorithm}: {self.step} of {len(self.rounds)} rounds done, next they {what}; {sent}."

    def sending(self, rank: int) -> str:
        """What a rank sends next: 'chunk 2 to rank 1', 'all chunks to rank 0', or nothing."""
        for send in self.sends:
            if send.src == rank:
                whole = len(send.chunks) == self.n
                return f"{'all chunks' if whole else f'chunk {send.chunks[0]}'} to rank {send.dst}"
        return "–"

    def travels(self, rank: int, chunk: int) -> bool:
        """Whether a rank sends this chunk next."""
        return any(send.src == rank and chunk in send.chunks for send in self.sends)

    @property
    def table(self) -> Table:
        """One row a rank: the sums it holds and what it sends next."""
        header = ("rank", *(f"chunk {chunk}" for chunk in range(self.n)), "sends next")
        rows = tuple(
            (str(rank), *(sum_text(parts, self.n) for parts in self.holdings[rank]), self.sending(rank))
            for rank in range(self.n)
        )
        return Table(header, rows, self.sentence)


def draw_step(n: int, algorithm: str = "ring", step: int = 0, *, ax: Axes | None = None) -> Axes:
    """Axes with one row a rank and one column a chunk after `step` rounds, and what each rank sends next."""
    now = Step(n, algorithm, step)
    if ax is None:
        ax = page_axes(2.6 + 0.95 * n, 1.5 + 0.5 * n)
    for rank in range(n):
        for chunk, parts in enumerate(now.holdings[rank]):
            width = 3 if now.travels(rank, chunk) else 0.5
            corner = (chunk - 0.45, rank - 0.42)
            ax.add_patch(Rectangle(corner, 0.9, 0.84, facecolor=sum_colour(parts, n), edgecolor="black", lw=width))
            ax.text(chunk, rank, sum_text(parts, n), ha="center", va="center", fontsize=9)
        ax.text(n - 0.3, rank, now.sending(rank), ha="left", va="center", fontsize=9)
    ax.set_xlim(-0.6, n + 1.4)
    ax.set_ylim(n - 0.4, -0.6)
    ax.set_xticks(range(n), [f"chunk {chunk}" for chunk in range(n)])
    ax.set_yticks(range(n), [f"rank {rank}" for rank in range(n)])
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    ax.set_frame_on(False)
    below = f"{now.sentence}; {LEGEND}".replace("; ", "\n")
    ax.set_xlabel(below, fontsize=9, loc="left")
    if isinstance(ax, PageAxes):
        ax.heading = f"{algorithm} all-reduce on {n} ranks, step {step}"
        ax.description, ax.table = now.sentence, now.table
    return ax


def draw_all_reduces(n: int = 4, *, ax: Axes | None = None) -> Axes:
    """Axes with ring, tree and naive under each other: an arrow a message, from when it leaves to when it is there.

    The time axis is in sends of the whole tensor and leaves alpha out; an arrow of a whole tensor is thick.
    """
    if ax is None:
        ax = page_axes(9.0, 1.4 + 0.24 * 3 * (n + 1))
    ticks = []
    for band, algorithm in enumerate(ALGORITHMS):
        top = band * (n + 1)
        end = _draw_band(ax, n, algorithm, top)
        ticks += [(top + rank, f"{algorithm}, rank {rank}") for rank in range(n)]
        ax.text(end + 0.08, top + (n - 1) / 2, _summary(n, algorithm), va="center", fontsize=9)
    ax.set_yticks(*zip(*ticks, strict=True), fontsize=8)
    ax.set_ylim(3 * (n + 1) - 1.5, -0.6)
    ax.set_xlim(-0.05, 2 * (n - 1) * 1.45 + 0.1)
    ax.set_xlabel(
        "time, in sends of the whole tensor (alpha left out)\n"
        "solid blue: added; dashed orange: kept; thick: a whole tensor"
    )
    if isinstance(ax, PageAxes):
        ax.heading = f"ring, tree and naive all-reduce on {n} ranks"
        ax.table = all_reduces_table(n)
        ax.description = "; ".join(f"{name}: {_summary(n, name)}" for name in ALGORITHMS).replace("\n", ", ") + "."
    return ax


def _draw_band(ax: Axes, n: int, algorithm: str, top: int) -> float:
    """Draw one algorithm's arrows; when it ends."""
    now = 0.0
    for sends in all_reduce_rounds(n, algorithm):
        share = max(len(send.chunks) for send in sends) / n
        for send in sends:
            ax.annotate(
                "",
                (now + share, top + send.dst),
                (now, top + send.src),
                arrowprops={
                    "arrowstyle": "-|>",
                    "lw": 1 if share < 1 else 2.5,
                    "color": BLUE if send.adds else ORANGE,
                    "ls": "-" if send.adds else (0, (2.5, 1.2)),
                    "shrinkA": 0,
                    "shrinkB": 1,
                },
            )
        now += share
    ax.hlines([top + rank for rank in range(n)], 0, now, color="#bbb", lw=0.8, zorder=0)
    return now


def _summary(n: int, algorithm: str) -> str:
    last = _finished(n, algorithm)
    return f"{last.step} rounds, {last.messages} messages\nat most {last.most:.2f} S from one rank"


def all_reduces_table(n: int) -> Table:
    """Ring, tree and naive: rounds, messages, the most one rank sends, and the time without alpha."""
    rows = []
    for algorithm in ALGORITHMS:
        last = _finished(n, algorithm)
        time = sum(max(len(send.chunks) for send in sends) / n for sends in last.rounds)
        rows.append((algorithm, str(last.step), str(last.messages), f"{last.most:.2f} S", f"{time:.2f} sends of S"))
    caption = f"An all-reduce of S bytes on {n} ranks. Solid blue arrows are added, dashed orange ones kept."
    return Table(("algorithm", "rounds", "messages", "most from one rank", "time without alpha"), tuple(rows), caption)


def _finished(n: int, algorithm: str) -> Step:
    return Step(n, algorithm, len(all_reduce_rounds(n, algorithm)))
