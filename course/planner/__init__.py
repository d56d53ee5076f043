"""Clusters on paper: what a message and an all-reduce cost, so far. Standard library only."""

from course.planner.network import ALGORITHMS, all_reduce_seconds, fit_alpha_beta

__all__ = ["ALGORITHMS", "all_reduce_seconds", "fit_alpha_beta"]
