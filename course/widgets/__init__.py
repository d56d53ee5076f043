"""Touched: ipywidgets wired over figures and planner. Live ranks and rules are passed in; none are imported.

Each widget has plain traits, works by mouse and by keyboard, and has a static twin with the same numbers.
"""

from course.widgets.amdahl import AmdahlExplorer
from course.widgets.brightness import BrightnessSlider
from course.widgets.memory import MemoryBar
from course.widgets.mesh import MeshExplorer
from course.widgets.planner import ClusterPlanner
from course.widgets.ring import RingStepper
from course.widgets.shards import ShardExplorer
from course.widgets.splitter import LayerSplitter
from course.widgets.tensor import TensorSplitter

__all__ = [
    "AmdahlExplorer",
    "BrightnessSlider",
    "ClusterPlanner",
    "LayerSplitter",
    "MemoryBar",
    "MeshExplorer",
    "RingStepper",
    "ShardExplorer",
    "TensorSplitter",
]
