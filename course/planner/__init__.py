"""Clusters on paper: parameters, FLOPs, memory, messages, the time of a step, whole runs, and which layout is best.

Read `step` first: it names every term of a step and where each is made. `validate` compares all of it with published
runs. Standard library only.
"""

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
