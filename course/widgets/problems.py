"""What the cluster planner is asked: a model, a cluster and a batch; and for a layout by hand its price or what to try.

Prices come from `planner`; nothing is drawn here.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass
from typing import Any

from course.errors import UsageError
from course.planner.memory import is_room, peak_memory
from course.planner.search import Priced, find_plans
from course.planner.step import predict_step
from course.spec.chips import Cluster, chip_of
from course.spec.plan import RECOMPUTE, Plan
from course.spec.shape import ModelShape, shape_of

SIZES = ("tp", "pp", "cp", "chunks", "microbatch", "zero")
NEAR = 3  # layouts named where one does not fit


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A model of `spec.shape` to be trained on so many chips of `spec.chips`, so many samples of `sequence` a step.

    Raises UsageError, with the nearest names, for what is not in the catalogues.
    """

    model: str = "llama-3.1-405b"
    chip: str = "h100"
    gpus: int = 16384
    batch: int = 2048
    sequence: int = 8192

    def __post_init__(self) -> None:
        self.start, self.cluster, self.shape  # noqa: B018 (each checks its part)

    @property
    def shape(self) -> ModelShape:
        return shape_of(self.model)

    @property
    def cluster(self) -> Cluster:
        return Cluster(chip=chip_of(self.chip), num_gpus=self.gpus)

    @property
    def start(self) -> Plan:
        """The batch and the software, not split yet."""
        return Plan(global_batch=self.batch, sequence=self.sequence, overlap_tp=True)

    def price(self, *, recompute: str = "none", **sizes: int) -> Priced:
        """The price of a layout on all chips; sizes: of SIZES, dp is what is left. Fitting memory is not asked for.

        Raises UsageError for a layout that cannot be.
        """
        tp, pp, cp = (sizes.get(axis, 1) for axis in ("tp", "pp", "cp"))
        if self.gpus % (tp * pp * cp):
            raise UsageError(f"tp x pp x cp = {tp * pp * cp} does not divide {self.gpus:,} GPUs")
        dp, microbatch = self.gpus // (tp * pp * cp), sizes.get("microbatch", 1)
        if self.batch % (dp * microbatch):
            near = "a larger tp or pp" if self.batch % dp else "microbatch=1"
            raise UsageError(
                f"a batch of {self.batch:,} does not divide by dp={dp} x microbatch={microbatch}: try {near}"
            )
        given: dict[str, Any] = {"zero": 1, **sizes, "dp": dp, "recompute": recompute}
        plan = Plan(
            global_batch=self.batch, sequence=self.sequence, overlap_tp=True, sequence_parallel=tp > 1, **given
        )  # fmt: skip
        if tp > self.cluster.per_node:
            raise UsageError(f"tp={tp} would leave the node of {self.cluster.per_node} GPUs")
        if plan.chunks > 1 and (plan.pp == 1 or plan.microbatches % plan.pp):
            raise UsageError(
                f"chunks={plan.chunks} need a pipeline, and a pp that divides the {plan.microbatches} microbatches; "
                f"pp={pp} does not"
            )
        return Priced(plan, predict_step(self.shape, plan, self.cluster), peak_memory(self.shape, plan))

    def fits(self, priced: Priced) -> bool:
        """Whether the fullest chip holds it."""
        return is_room(priced.memory, priced.plan, self.cluster.chip)

    @property
    def found(self) -> tuple[Priced, ...]:
        """Every layout that the planner's search found to fit, fastest first; kept once it was made. Raises UsageError
        where nothing fits."""
        return _search(self)

    @property
    def first_try(self) -> dict[str, int]:
        """{"tp", "pp"} to begin a game with: a whole node and 4 stages, or less where that cannot be."""
        for tp, pp in itertools.product((8, 4, 2), (4, 2, 1)):
            try:
                self.price(tp=tp, pp=pp)
            except UsageError:
                continue
            return {"tp": tp, "pp": pp}
        return {"tp": 1, "pp": 1}

    def advice(self, priced: Priced | None) -> list[str]:
        """What to try in place of a layout that does not fit: a sentence, or none for one that cannot be, whose error
        says it. Or that nothing fits."""
        try:
            self.found  # noqa: B018 (raises where nothing fits)
        except UsageError as error:
            return [f"{error}."]
        sizes = f"To fit: a larger pp, tp up to {self.cluster.per_node}, ZeRO-2 or more recomputation."
        return [sizes] if priced else []

    def near(self, *, recompute: str = "none", **sizes: int) -> list[str]:
        """The layouts that fit and are nearest to these sizes, as words; each with other axes."""

        def distance(priced: Priced) -> float:
            plan = priced.plan
            steps = {name: abs(math.log2(getattr(plan, name) / sizes.get(name, 1))) for name in SIZES[:5]}
            steps["chunks"] /= 2
            steps["microbatch"] /= 2
            again = abs(RECOMPUTE.index(plan.recompute) - RECOMPUTE.index(recompute)) / 4
            return sum(steps.values()) + again + (plan.zero != sizes.get("zero", 1)) / 2

        nearest: dict[tuple[int, int, int], Plan] = {}
        for priced in sorted(self.found, key=distance):
            plan = priced.plan
            nearest.setdefault((plan.tp, plan.pp, plan.cp), plan)
        return [layout_text(plan) for plan in list(nearest.values())[:NEAR]]


def layout_text(plan: Plan) -> str:
    """The sizes that are not 1, and what is recomputed: "tp 8, pp 16, dp 128, 8 chunks, microbatch 1, ..."."""
    words = [f"{axis} {getattr(plan, axis)}" for axis in ("tp", "pp", "cp", "dp") if getattr(plan, axis) > 1]
    words += [f"{plan.chunks} chunks"] if plan.chunks > 1 else []
    return ", ".join([*words, f"microbatch {plan.microbatch}", f"ZeRO-{plan.zero}", f"recompute {plan.recompute}"])


@functools.lru_cache(maxsize=16)
def _search(problem: Problem) -> tuple[Priced, ...]:
    return find_plans(problem.shape, problem.cluster, problem.start, best=10**6).plans
