"""The text of the course as bytes, cut into windows and served in batches.

The text is the English prose in Python's own `pydoc_data.topics`: nothing is downloaded, and it differs a little
between Python versions. Which rank gets which window is decided in `parallel.data`.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from course.errors import CourseError, UsageError


def load_text() -> str:
    """The help texts of the Python language, about 465,000 characters, in the order of their names."""
    try:
        from pydoc_data.topics import topics
    except ImportError as error:
        raise CourseError(
            "the course trains on the texts of Python's module pydoc_data, which this Python lacks: "
            "install your system's full Python (on Debian: apt install libpython3-stdlib)"
        ) from error
    return "\n".join(topics[name] for name in sorted(topics))


def encode(text: str) -> Tensor:
    """One token per byte of the text in UTF-8: (N,) int64, each 0 to 255."""
    return torch.frombuffer(bytearray(text, "utf8"), dtype=torch.uint8).long() if text else torch.empty(0).long()


def decode(tokens: Tensor) -> str:
    """The text of byte tokens (N,); bytes that are not UTF-8 show as the replacement character."""
    return bytes(tokens.tolist()).decode("utf8", errors="replace")


def count_windows(tokens: Tensor, context: int) -> int:
    """How many windows of `context` tokens, each with a token after it to guess, fit side by side."""
    return max(0, (len(tokens) - 1) // context)


def windows(tokens: Tensor, indices: Sequence[int], context: int) -> tuple[Tensor, Tensor]:
    """Inputs and targets of the chosen windows: x, y, each (len(indices), context) int64.

    Window i covers tokens i * context up to (i + 1) * context; its targets are the same places, one token later.
    Raises UsageError for a window that is not there.
    """
    count = count_windows(tokens, context)
    for i in indices:
        if not 0 <= i < count:
            raise UsageError(f"window {i} was asked for, but {len(tokens)} tokens make windows 0 to {count - 1}")
    starts = torch.tensor(indices, dtype=torch.int64)[:, None] * context  # (B, 1)
    places = (starts + torch.arange(context)).to(tokens.device)  # (B, 1) + (T,) -> (B, T)
    return tokens[places], tokens[places + 1]


def epoch_order(count: int, *, epoch: int = 0, seed: int = 0) -> list[int]:
    """The numbers 0 to count - 1, shuffled: the same for equal (seed, epoch) on every machine."""
    order = list(range(count))
    random.Random(f"seed {seed}, epoch {epoch}").shuffle(order)
    return order


def batches(
    tokens: Tensor, *, context: int, batch: int, seed: int = 0, steps: int | None = None
) -> Iterator[tuple[Tensor, Tensor]]:
    """Batches (x, y), each (batch, context) int64: every window once an epoch, reshuffled for the next.

    The last batch of an epoch is smaller where `batch` does not divide the windows. Ends after `steps` batches, or
    after one epoch when `steps` is None. Raises UsageError when the text holds no window.
    """
    count = count_windows(tokens, context)
    if count == 0 or batch < 1:
        raise UsageError(f"{len(tokens)} tokens in windows of {context}, {batch} a batch: there is nothing to serve")
    if steps is None:
        steps = -(-count // batch)  # one epoch, rounded up
    epochs = (epoch_order(count, epoch=epoch, seed=seed) for epoch in itertools.count())
    chosen = (order[i : i + batch] for order in epochs for i in range(0, count, batch))
    for indices in itertools.islice(chosen, steps):
        yield windows(tokens, indices, context)
