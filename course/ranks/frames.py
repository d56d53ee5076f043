"""Where in the learner's code something happened: frames that are theirs, in words such as "In [5], line 6".

Frames of torch, of this package and of the interpreter's own machinery are not the learner's. Used on both sides: a
rank finds the line, the notebook knows the cells' numbers and sources.
"""

from __future__ import annotations

import linecache
import os
import sys
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from types import CodeType, FrameType

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STDLIB = os.path.dirname(os.__file__) + os.sep


@dataclass(frozen=True, slots=True)
class Frame:
    """One line of a traceback."""

    file: str
    line: int
    function: str
    text: str = ""


class Places:
    """Turns (file, line) into words; knows the notebook's cells by the file names that IPython gives them."""

    def __init__(self) -> None:
        self.cells: dict[str, str] = {}
        self._foreign: dict[CodeType, bool] = {}

    def words(self, file: str, line: int) -> str:
        return f"{self.cells.get(file) or os.path.basename(file) or '?'}, line {line}"

    def is_foreign(self, code: CodeType) -> bool:
        """Whether the code belongs to torch, this package or Python itself, not to the learner."""
        try:
            return self._foreign[code]
        except KeyError:
            file = code.co_filename
            ours = file.startswith(_HERE) and file not in self.cells
            foreign = ours or file.startswith(("<frozen", _STDLIB)) or f"{os.sep}site-packages{os.sep}" in file
            return self._foreign.setdefault(code, foreign)

    def find(self, frame: FrameType | None) -> tuple[str, int]:
        """(file, line) of the innermost frame that is the learner's; the outermost one known where none is."""
        last = ("", 0)
        while frame is not None:
            if not self.is_foreign(frame.f_code):
                return frame.f_code.co_filename, frame.f_lineno
            last = (frame.f_code.co_filename, frame.f_lineno)
            frame = frame.f_back
        return last


def of_error(error: BaseException, places: Places) -> tuple[Frame, ...]:
    """The learner's frames of an error, outermost first; where none is the learner's, the last few of others."""
    if isinstance(error, SyntaxError) and error.filename in places.cells:
        return (Frame(error.filename, error.lineno or 1, "<module>", (error.text or "").strip()),)
    steps = list(traceback.walk_tb(error.__traceback__))
    others = [(f, n) for f, n in steps if not f.f_code.co_filename.startswith(_HERE)][-3:]
    mine = [(f, n) for f, n in steps if not places.is_foreign(f.f_code)] or others
    return tuple(
        Frame(f.f_code.co_filename, n, f.f_code.co_name, linecache.getline(f.f_code.co_filename, n).strip())
        for f, n in mine
    )


def said(error: BaseException) -> str:
    """The text of an error, and under it that of each error it was raised `from`: libraries wrap what went wrong."""
    lines = [_text(error)]
    seen = {id(error)}
    while (error := error.__cause__) is not None and id(error) not in seen:  # type: ignore[assignment]
        seen.add(id(error))
        lines.append(f"because of {type(error).__name__}: {_text(error).partition(chr(10))[0]}".rstrip(": "))
    return "\n".join(lines)


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as why:  # an exception class of the learner's own
        return f"(its text cannot be made: {type(why).__name__})"


def render(frames: Iterable[Frame], places: Places) -> str:
    """Frames as indented lines, with the source where it is known here."""
    lines = []
    frames = list(frames)
    for i, frame in enumerate(frames):
        if len(frames) > 8 and 3 <= i < len(frames) - 4:
            lines += [f"  … {len(frames) - 7} more lines like these"] if i == 3 else []
            continue
        text = frame.text or linecache.getline(frame.file, frame.line).strip()
        name = f", in {frame.function}" if not frame.function.startswith("<") else ""
        lines.append(f"  {places.words(frame.file, frame.line)}{name}")
        if text:
            lines.append(f"      {text}")
    return "\n".join(lines)


def notebook_cells() -> dict[str, str]:
    """File name -> "In [n]" of every cell this notebook has run; empty outside IPython."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    known = getattr(getattr(shell, "compile", None), "_filename_map", {})
    return {file: f"In [{number}]" for file, number in dict(known).items()}
