"""Drawn: matplotlib figures of plain data, `draw_x(data, *, ax=None) -> ax`. Nothing is computed here but places."""

from course.figures.shards import draw_shards, shards_table
from course.figures.timeline import draw_timeline, timeline_table

__all__ = ["draw_shards", "draw_timeline", "shards_table", "timeline_table"]
