"""Drawn: matplotlib figures of plain data, `draw_x(data, *, ax=None) -> ax`. Nothing is computed here but places."""

from course.figures.amdahl import draw_amdahl
from course.figures.brightness import draw_brightness, draw_timings
from course.figures.collective import draw_collectives, shape_image
from course.figures.cost import draw_cost
from course.figures.failures import draw_lost
from course.figures.memory import draw_memory_bars, draw_memory_curve
from course.figures.mesh import draw_mesh
from course.figures.pipeline import draw_pipeline, draw_split, pipeline_table, split_table
from course.figures.plan import draw_plan_memory, draw_plan_seconds
from course.figures.published import draw_published, errors_table
from course.figures.ring import draw_all_reduces, draw_step
from course.figures.roofline import draw_roofline, roofline_table
from course.figures.shards import draw_shards, shards_table
from course.figures.tensor import draw_tensor
from course.figures.timeline import draw_timeline, timeline_table

__all__ = [
    "draw_all_reduces",
    "draw_amdahl",
    "draw_brightness",
    "draw_collectives",
    "draw_cost",
    "draw_lost",
    "draw_memory_bars",
    "draw_memory_curve",
    "draw_mesh",
    "draw_pipeline",
    "draw_plan_memory",
    "draw_plan_seconds",
    "draw_published",
    "draw_roofline",
    "draw_shards",
    "draw_split",
    "draw_step",
    "draw_tensor",
    "draw_timeline",
    "draw_timings",
    "errors_table",
    "pipeline_table",
    "roofline_table",
    "shape_image",
    "shards_table",
    "split_table",
    "timeline_table",
]
