"""%%ranks: run a notebook cell on every rank, in a namespace that stays.

The gang of a notebook: the `Ranks` that the learner made and still has open, else one that the magic makes.
"""

from __future__ import annotations

import argparse
import ast
import linecache
import shlex
import sys
import time
from typing import Any, NoReturn

from course.errors import UsageError
from course.ranks.output import tagged
from course.ranks.pool import Ranks, number_of_ranks

USAGE = "%%ranks [-n NUMBER] [--rank 0,2] [--timeout SECONDS] [--quiet]"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"%%ranks: {message}; it is used as {USAGE}")


def _parser() -> _Parser:
    parser = _Parser(prog="%%ranks", add_help=False)
    parser.add_argument("-n", type=int, default=None)
    parser.add_argument("--rank", default=None)
    parser.add_argument("--timeout", type=float, default=None)
    parser.add_argument("--quiet", action="store_true")
    return parser


class RanksMagic:
    """The magic of one notebook; it holds the gang that cells share."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._own: Ranks | None = None
        self._cells = 0

    def __call__(self, line: str, cell: str) -> None:
        try:
            options = _parser().parse_args(shlex.split(line))
        except ValueError as error:  # of shlex: a quotation that is not closed
            raise UsageError(f"%%ranks {line}: {error}; it is used as {USAGE}") from None
        ranks = self._gang(options.n)
        only = _chosen(options.rank, ranks.world_size)
        source, timed = _plain_python(cell)
        self._cells += 1
        file = f"<ranks cell {self._cells}>"
        source = "\n" + source  # the magic's own line is line 1 of the cell
        linecache.cache[file] = (len(source), None, source.splitlines(True), file)
        ranks.name_cell(file, f"In [{self._number()}]")
        start = time.perf_counter()
        run = ranks.cell(source, file, only=only, timeout=options.timeout, quiet=options.quiet)
        seconds = time.perf_counter() - start
        if not options.quiet:
            for rank, value in zip(only or range(ranks.world_size), run.values, strict=True):
                for text in tagged(rank, value or ""):
                    _say(text)
            if timed:
                _say(f"Wall time: {seconds:.3g} s")

    def _number(self) -> int:
        """The number beside the cell that is running. A kernel's `execution_count` is the next one's by then."""
        return max(getattr(self._shell.compile, "_filename_map", {}).values(), default=self._shell.execution_count)

    def _gang(self, n: int | None) -> Ranks:
        """The open gang of this notebook, of `n` ranks if a number is given."""
        if n is not None:
            number_of_ranks(n)
        live = self._named() or (self._own if self._own is not None and not self._own.closed else None)
        if live is None:
            live = self._own = Ranks(n)
            _say(repr(live)[1:-1])
        elif n is not None and n != live.world_size:
            _say(f"note: {live.world_size} ranks were replaced by {n}; their variables are gone")
            live.restart(n)
        return live

    def _named(self) -> Ranks | None:
        """The newest open gang among the notebook's variables."""
        names = self._shell.user_ns.values()
        return next((v for v in reversed(list(names)) if isinstance(v, Ranks) and not v.closed), None)


def _chosen(text: str | None, world_size: int) -> list[int] | None:
    if text is None:
        return None
    try:
        ranks = sorted({int(part) for part in text.split(",")})
    except ValueError:
        raise UsageError(f"%%ranks --rank {text}: give numbers of ranks, as in --rank 0,2") from None
    wrong = [rank for rank in ranks if not 0 <= rank < world_size]
    if wrong:
        raise UsageError(f"%%ranks --rank {text}: rank {wrong[0]} does not exist, ranks are 0 to {world_size - 1}")
    return ranks


def _plain_python(cell: str) -> tuple[str, bool]:
    """The cell without notebook syntax, and whether it asked for its time; UsageError for what ranks do not know."""
    lines = cell.split("\n")
    timed = False
    for number, line in enumerate(lines):
        text = line.strip()
        if text.startswith("%%time") and not text.startswith("%%timeit"):
            lines[number], timed = "", True
        elif text.startswith("%matplotlib"):
            lines[number] = ""
        elif text:
            break
    source = "\n".join(lines)
    try:
        ast.parse(source)
    except SyntaxError:
        for number, line in enumerate(lines):
            if line.lstrip().startswith(("%", "!")):
                text = line.strip()
                raise UsageError(
                    f"line {number + 2}: `{text}` is notebook syntax, which ranks do not have: use Python"
                ) from None
    return source, timed


def register(shell: Any) -> None:
    """Add the magic to an IPython shell; once."""
    if "ranks" not in shell.magics_manager.magics["cell"]:
        shell.register_magic_function(RanksMagic(shell), magic_kind="cell", magic_name="ranks")


def _say(text: str) -> None:
    """To the cell's output."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
