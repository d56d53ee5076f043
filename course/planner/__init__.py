"""Clusters on paper: parameters, FLOPs, memory, messages, the time of a step, whole runs, and which layout is best.

Read `step` first: it names every term of a step and where each is made. `validate` compares all of it with published
runs. Standard library only; names load when they are first used.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # as typing's, which takes longer to import than the rest of this file
if TYPE_CHECKING:
    from course.planner.flops import count_parameters, model_flops
    from course.planner.memory import fits, peak_memory, states_bytes
    from course.planner.network import ALGORITHMS, all_reduce_seconds, fit_alpha_beta
    from course.planner.run import checkpoint_interval, plan_run, training_cost
    from course.planner.search import find_plans
    from course.planner.step import predict_step

__all__ = [
    "ALGORITHMS",
    "all_reduce_seconds",
    "checkpoint_interval",
    "count_parameters",
    "find_plans",
    "fit_alpha_beta",
    "fits",
    "model_flops",
    "peak_memory",
    "plan_run",
    "predict_step",
    "states_bytes",
    "training_cost",
]

_ROOMS = {
    "flops": ("count_parameters", "model_flops"),
    "memory": ("fits", "peak_memory", "states_bytes"),
    "network": ("ALGORITHMS", "all_reduce_seconds", "fit_alpha_beta"),
    "run": ("checkpoint_interval", "plan_run", "training_cost"),
    "search": ("find_plans",),
    "step": ("predict_step",),
}


def __getattr__(name: str) -> object:
    for room, names in _ROOMS.items():
        if name in names:
            value: object = getattr(importlib.import_module(f"course.planner.{room}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'course.planner' has no name {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return __all__
