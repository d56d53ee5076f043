"""The shard explorer: turn the number of samples, ranks, epoch and seed, and see who trains on what.

The rule that deals is passed in, so a learner can look at their own. Its static twin is `figures.draw_shards`.
"""

from __future__ import annotations

import html
from collections.abc import Callable

import ipywidgets
import traitlets
from matplotlib.axes import Axes

from course.errors import UsageError
from course.figures.page import InWords, Table
from course.figures.shards import LEGEND, draw_shards, judge_shares, owners, rank_colour, shards_table

CONTROLS = (  # trait, words, least, most
    ("n", "samples", 0, 200),
    ("world_size", "ranks", 1, 8),
    ("epoch", "epoch", 0, 9),
    ("seed", "seed", 0, 9),
)
SQUARE = (
    "display:inline-block;min-width:1.7em;padding:0 1px;height:1.7em;line-height:1.7em;margin:1px;text-align:center;"
    "border:1px solid #333;color:#000;font-size:12px;background:"
)


class ShardExplorer(InWords, ipywidgets.VBox):
    """`ShardExplorer(rule)`: rule(n, rank, world_size, epoch=..., seed=...) gives the samples of one rank.

    Traits to set: n, world_size, epoch, seed. Traits to read: shares (one list a rank), sizes, verdict (one sentence).
    A rule that raises shows its error as the verdict, and nothing else breaks.
    """

    n = traitlets.Int(22)
    world_size = traitlets.Int(4)
    epoch = traitlets.Int(0)
    seed = traitlets.Int(0)
    shares = traitlets.List()
    sizes = traitlets.List()
    verdict = traitlets.Unicode("")

    def __init__(
        self, rule: Callable[..., list[int]], *, n: int = 22, world_size: int = 4, epoch: int = 0, seed: int = 0
    ) -> None:
        if not callable(rule):
            raise UsageError(
                f"ShardExplorer needs a function that deals, but got {type(rule).__name__}: try shard_indices"
            )
        self._rule = rule
        self._picture = ipywidgets.HTML()
        super().__init__()
        self.n, self.world_size, self.epoch, self.seed = n, world_size, epoch, seed
        controls = [self._control(*control) for control in CONTROLS]
        self.children = [ipywidgets.HBox(controls, layout={"flex_flow": "row wrap"}), self._picture]
        self.observe(lambda change: self._deal(), [name for name, *_ in CONTROLS])
        self._deal()

    def _control(self, name: str, words: str, least: int, most: int) -> ipywidgets.Widget:
        """A field that takes typed numbers and arrow keys, with steps to click."""
        field = ipywidgets.BoundedIntText(
            value=getattr(self, name), min=least, max=most, description=words, layout={"width": "11em"}
        )
        traitlets.link((self, name), (field, "value"))
        return field

    def _deal(self) -> None:
        try:
            shares = [
                [int(sample) for sample in self._rule(self.n, rank, self.world_size, epoch=self.epoch, seed=self.seed)]
                for rank in range(self.world_size)
            ]
        except Exception as error:
            self.shares, self.sizes = [], []
            self.verdict = f"The rule raised {type(error).__name__}: {error}"
        else:
            self.shares, self.sizes = shares, [len(share) for share in shares]
            self.verdict = judge_shares(self.n, shares)
        self._picture.value = self._html()

    def _html(self) -> str:
        if not self.shares:
            return f'<div role="status">{html.escape(self.verdict)}</div>'
        squares = "".join(
            f'<span style="{SQUARE}{rank_colour(ranks[0]) if ranks else "#fff"}" title="sample {sample}">'
            f"{'+'.join(map(str, ranks)) or '–'}</span>"
            for sample, ranks in enumerate(owners(self.n, self.shares))
        )
        return (
            f'<div aria-hidden="true">{LEGEND}</div>'
            f'<div aria-hidden="true" style="max-width:52em;line-height:1">{squares}</div>'
            f'<div role="status" aria-live="polite">{self.table()._repr_html_()}</div>'
        )

    def table(self) -> Table:
        """The text twin: sizes and samples of each rank, and the verdict."""
        return shards_table(self.n, self.shares)

    def figure(self) -> Axes:
        """The static twin: the same squares, drawn."""
        return draw_shards(self.n, self.shares)

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={getattr(self, name)}" for name, *_ in CONTROLS)
        return f"ShardExplorer({given})\n{self.table() if self.shares else self.verdict}"
