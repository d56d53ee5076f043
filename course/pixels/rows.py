"""Rows cut into consecutive parts, for whoever works on them side by side."""

from __future__ import annotations

from course.errors import UsageError


def split_rows(rows: int, parts: int) -> list[tuple[int, int]]:
    """`parts` pairs (start, stop) that cover the rows 0 to rows - 1 once, in order.

    Sizes differ by at most one and the first parts are the bigger ones, as with torch.tensor_split. With more parts
    than rows the last parts are empty, start == stop. Raises UsageError for negative rows or less than one part.
    """
    if rows < 0 or parts < 1:
        raise UsageError(f"split_rows(rows={rows}, parts={parts}): rows must be at least 0 and parts at least 1")
    size, more = divmod(rows, parts)
    starts = [part * size + min(part, more) for part in range(parts + 1)]
    return list(zip(starts[:-1], starts[1:], strict=True))
