"""Touched: ipywidgets wired over figures and planner. Live ranks and rules are passed in; none are imported.

Each widget has plain traits, works by mouse and by keyboard, and has a static twin with the same numbers.
"""

from course.widgets.shards import ShardExplorer

__all__ = ["ShardExplorer"]
