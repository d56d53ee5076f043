"""A whole run: hours, money, and what failures take of both. Steps come from `step`; here they add up."""

from __future__ import annotations

import math
from dataclasses import dataclass

from course.errors import UsageError

SECONDS_AN_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Run:
    """A run of so many steps. gpu_hours: of all chips together, lost time included. cost: in the price's currency."""

    steps: int
    hours: float
    gpu_hours: float
    cost: float
    goodput: float


@dataclass(frozen=True, slots=True)
class Published:
    """A whole run as its authors tell it: hours of all chips together, money where they name it, and where."""

    name: str
    chip: str
    gpu_hours: float
    cost: float | None
    source: str


PUBLISHED = (
    Published(
        "Stable Diffusion v1", "a100-40gb", 150_000, 600_000.0, "E. Mostaque, August 2022: 256 A100, market price"
    ),
    Published("Llama 3.1 8B", "h100", 1_460_000, None, "Llama 3.1 model card, July 2024"),
    Published("Llama 3.1 70B", "h100", 7_000_000, None, "Llama 3.1 model card, July 2024"),
    Published("Llama 3.1 405B", "h100", 30_840_000, None, "Llama 3.1 model card, July 2024"),
)
"""Runs whose hours are known; steps are not, so they are compared with hours alone."""


def plan_run(*, step_seconds: float, steps: int, num_gpus: int, price: float = 0.0, goodput: float = 1.0) -> Run:
    """The Run of `steps` steps on `num_gpus` chips at `price` an hour of one chip.

    goodput: share of the time that makes progress that stays (1: no failure, no checkpoint, no restart). Raises
    UsageError for what cannot be.
    """
    for name, value in (("step_seconds", step_seconds), ("steps", steps), ("num_gpus", num_gpus)):
        if not 0 < value < math.inf:
            raise UsageError(f"plan_run({name}={value!r}): it must be above 0")
    if not 0 <= price < math.inf:
        near = abs(price) if math.isfinite(price) else 0.0
        raise UsageError(f"plan_run(price={price!r}): a price an hour of one chip is at least 0; try {near}")
    if not 0 < goodput <= 1:
        raise UsageError(f"plan_run(goodput={goodput!r}): goodput is a share, above 0 and at most 1")
    hours = step_seconds * steps / goodput / SECONDS_AN_HOUR
    return Run(steps, hours, hours * num_gpus, hours * num_gpus * price, goodput)


def training_cost(gpu_hours: float, price: float) -> float:
    """gpu_hours x price: Stable Diffusion v1's 150,000 hours at $4 are $600,000 (its authors, 2022)."""
    if not 0 <= gpu_hours < math.inf or not 0 <= price < math.inf:
        raise UsageError(f"training_cost({gpu_hours!r}, {price!r}): hours and price are at least 0")
    return gpu_hours * price


def checkpoint_interval(checkpoint_seconds: float, mean_seconds_to_failure: float) -> float:
    """Seconds between checkpoints that lose least, sqrt(2 C M) (Young 1974; Daly 2006, first order)."""
    if not checkpoint_seconds > 0 or not mean_seconds_to_failure > 0:
        raise UsageError(
            f"checkpoint_interval({checkpoint_seconds!r}, {mean_seconds_to_failure!r}): both are seconds above 0"
        )
    return math.sqrt(2 * checkpoint_seconds * mean_seconds_to_failure)


def seconds_to_failure(num_gpus: int, *, interruptions: int = 419, days: float = 54, chips: int = 16384) -> float:
    """Mean seconds between interruptions of num_gpus chips, if each chip fails alike and alone.

    The defaults are Llama 3 405B's: 419 unexpected interruptions in 54 days on 16,384 H100 (Llama 3, table 5).
    """
    return days * 86400 / interruptions * chips / num_gpus


def goodput(*, checkpoint_seconds: float, restart_seconds: float, mean_seconds_to_failure: float) -> float:
    """Share of the time that stays, with checkpoints at Young's interval t: 1 - C/t - (t/2 + R)/M, at least 0.

    C: seconds a checkpoint stops the run. R: seconds from a failure to the first new step. M: between failures.
    """
    interval = checkpoint_interval(checkpoint_seconds, mean_seconds_to_failure)
    lost = checkpoint_seconds / interval + (interval / 2 + restart_seconds) / mean_seconds_to_failure
    return max(0.0, 1 - lost)
