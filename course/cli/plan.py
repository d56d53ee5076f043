"""`course plan`: the best layouts of a model on a cluster as a table, or one layout priced, with every term on request.

What a layout costs is reckoned in `planner`; here are the words and the numbers' units.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from rich.console import Console
from rich.table import Table

from course.errors import UsageError
from course.planner.memory import is_room, needed_bytes, peak_memory
from course.planner.run import Run, plan_run
from course.planner.search import Priced, find_plans
from course.planner.stages import plan_stages
from course.planner.step import predict_step
from course.spec.chips import Cluster, chip_of
from course.spec.plan import RECOMPUTE, Plan, stage_layers
from course.spec.shape import ModelShape, shape_of

GIB = 2**30
WIDTH = 132
SIZES = ("dp", "tp", "pp", "cp", "chunks", "microbatch", "zero")


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is asked for: a model on a cluster, and how long and at what price it is trained."""

    model: str
    chip: str
    gpus: int
    global_batch: int
    sequence: int
    precision: str = "bf16"
    layout: str = ""
    best: int = 5
    tokens: float = 0.0
    price: float = 0.0
    goodput: float = 1.0


def show_plans(request: Request, *, explain: bool = False, as_json: bool = False) -> None:
    """Print the plans that `request` asks for. Raises UsageError for what cannot be, with the nearest possibility."""
    _check_money(request)
    shape, cluster = shape_of(request.model), Cluster(chip=chip_of(request.chip), num_gpus=request.gpus)
    start = Plan(
        global_batch=request.global_batch, sequence=request.sequence, precision=request.precision, overlap_tp=True
    )
    if request.layout:
        plan = parse_layout(request.layout, start, request.gpus)
        _check_chunks(plan, shape)
        plans: Sequence[Priced] = [_priced(shape, cluster, plan)]
        used = f", {plan.num_gpus:,} of them used" if plan.num_gpus < request.gpus else ""
        title = f"{request.model} on {request.gpus:,} x {request.chip}{used}"
    else:
        found = find_plans(shape, cluster, start, best=request.best)
        plans = found.plans
        title = f"{request.model} on {request.gpus:,} x {request.chip}: {found.priced} of {found.tried} layouts fit"
    rows = [_row(priced, request, cluster) for priced in plans]
    if as_json:
        print(json.dumps(rows[0] if request.layout else rows))
        return
    console = Console(width=max(WIDTH, Console().width))  # a narrow terminal wraps lines; cut numbers would be lost
    console.print(_table(title, rows))
    if explain:
        console.print(_terms(plans[0]))


def show_stages(request: Request, *, as_json: bool = False) -> None:
    """Print the stages that Alpa's two levels find for `request`, which has no layout of its own."""
    _check_money(request)
    if request.layout:
        raise UsageError("--alpa chooses the layout itself: leave --layout out")
    shape, cluster = shape_of(request.model), Cluster(chip=chip_of(request.chip), num_gpus=request.gpus)
    start = Plan(global_batch=request.global_batch, sequence=request.sequence, precision=request.precision)
    found = plan_stages(shape, cluster, start)
    if as_json:
        print(json.dumps(asdict(found)))
        return
    console = Console(width=max(WIDTH, Console().width))
    cut = f"{request.model} on {request.gpus:,} x {request.chip}, as Alpa cuts it"
    console.print(f"{cut}: {found.seconds:.2f} s a step, microbatches: {found.microbatches}", highlight=False)
    table = Table(box=None, header_style="bold")
    for name in ("layers", "chips", "rows", "columns", "split of qkv, out, up, down"):
        table.add_column(name, justify="left" if name.startswith("split") else "right")
    for stage in found.stages:
        mesh = (stage.rows * stage.columns, stage.rows, stage.columns)
        table.add_row(f"{stage.first}-{stage.last - 1}", *map(str, mesh), ", ".join(stage.splits))
    console.print(table)


def parse_layout(text: str, start: Plan, num_gpus: int) -> Plan:
    """ "tp=8,pp=16,chunks=8,recompute=full" -> `start` with these; dp is what is left of the GPUs if it is not given.

    Raises UsageError that names the part it cannot read.
    """
    given: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = part.partition("=")
        least = 0 if name == "zero" else 1
        if name in SIZES and re.fullmatch("[0-9]{1,9}", value) and int(value) >= least and name not in given:
            given[name] = int(value)
        elif name == "recompute" and value in RECOMPUTE:
            given[name] = value
        else:
            raise UsageError(
                f"--layout: cannot read {part!r}; write {', '.join(SIZES)}=a number, once each, or "
                f"recompute={'|'.join(RECOMPUTE)}"
            )
    others = given.get("tp", 1) * given.get("pp", 1) * given.get("cp", 1)
    if "dp" not in given and others > num_gpus:
        raise UsageError(f"--layout {text}: tp x pp x cp is {others}, but there are {num_gpus} GPUs: try a smaller pp")
    given.setdefault("dp", num_gpus // others)
    return replace(start, **{"zero": 1, "sequence_parallel": given.get("tp", 1) > 1, **given})


def _check_money(request: Request) -> None:
    """Raises UsageError for prices, tokens and shares that cannot be, and for those that would go unused."""
    if not 0 <= request.price < math.inf:
        near = f"{abs(request.price):g}" if math.isfinite(request.price) else "2"
        raise UsageError(f"--price {request.price:g}: a price an hour of one chip is at least 0: try --price {near}")
    if not 0 <= request.tokens < math.inf:
        raise UsageError(f"--tokens {request.tokens:g}: a run has a number of tokens: try --tokens 1e12")
    if not 0 < request.goodput <= 1:
        raise UsageError(f"--goodput {request.goodput:g}: a share, above 0 and at most 1: try --goodput 0.9")
    if request.price and not request.tokens:
        raise UsageError("--price is for a whole run, but --tokens does not say how long it is: try --tokens 1e12")


def _check_chunks(plan: Plan, shape: ModelShape) -> None:
    """Raises UsageError where a stage's layers or the microbatches cannot be interleaved like this."""
    if plan.chunks == 1:
        return
    layers = max(stage_layers(shape.layers, plan.pp))
    near = max(v for v in range(1, plan.chunks + 1) if layers % v == 0)
    if plan.pp == 1 or layers % plan.chunks:
        near = 1 if plan.pp == 1 else near
        raise UsageError(
            f"--layout: the {layers} layers of a stage (pp={plan.pp}) are not cut into chunks={plan.chunks}: "
            f"try chunks={near}"
        )
    if plan.microbatches % plan.pp:
        raise UsageError(
            f"--layout: chunks={plan.chunks} need microbatches in rounds of pp={plan.pp}, but there are "
            f"{plan.microbatches}: try chunks=1"
        )


def _priced(shape: ModelShape, cluster: Cluster, plan: Plan) -> Priced:
    return Priced(plan, predict_step(shape, plan, cluster), peak_memory(shape, plan))


def _row(priced: Priced, request: Request, cluster: Cluster) -> dict[str, Any]:
    """Everything about one plan, as plain numbers: seconds, bytes, hours, money. Of the memory, `total` is the plan's
    own and `needed` is with driver, NCCL and gaps, which is what has to fit."""
    step, plan = priced.step, priced.plan
    names = (*SIZES, "recompute", "global_batch", "sequence", "precision")
    row: dict[str, Any] = {"layout": {name: getattr(plan, name) for name in names}}
    memory = {"total": priced.memory.total, "needed": needed_bytes(priced.memory, plan), "fits": _fits(priced, cluster)}
    row["memory"] = asdict(priced.memory) | memory
    row["seconds"] = asdict(step) | {"step": step.seconds}
    row["mfu"] = step.mfu
    row["bubble"] = step.bubble / step.seconds
    row["exposed"] = (step.tensor + step.context + step.data) / step.seconds
    run = _run(step.seconds, request)
    row["run"] = asdict(run) if run else None
    return row


def _fits(priced: Priced, cluster: Cluster) -> bool:
    return is_room(priced.memory, priced.plan, cluster.chip)


def _run(step_seconds: float, request: Request) -> Run | None:
    if not request.tokens:
        return None
    steps = max(1, round(request.tokens / request.global_batch / request.sequence))
    return plan_run(
        step_seconds=step_seconds, steps=steps, num_gpus=request.gpus, price=request.price, goodput=request.goodput
    )


def _table(title: str, rows: Sequence[dict[str, Any]]) -> Table:
    has_run = rows[0]["run"] is not None
    table = Table(title=title, box=None, title_justify="left", header_style="bold")
    for name in (
        "dp",
        "tp",
        "pp",
        "cp",
        "chunks",
        "mb",
        "zero",
        "recompute",
        "GiB",
        "step s",
        "MFU",
        "bubble",
        "exposed",
    ):
        table.add_column(name, justify="left" if name == "recompute" else "right")
    for name in ("days", "GPU hours", "cost") if has_run else ():
        table.add_column(name, justify="right")
    for row in rows:
        layout, memory = row["layout"], row["memory"]
        cells = [str(layout[name]) for name in (*SIZES, "recompute")]
        cells.append(f"{memory['needed'] / GIB:.1f}" + ("" if memory["fits"] else " too much"))
        cells += [f"{row['seconds']['step']:.2f}", *(f"{row[name]:.1%}" for name in ("mfu", "bubble", "exposed"))]
        if has_run:
            run = row["run"]
            cells += [f"{run['hours'] / 24:,.1f}", f"{run['gpu_hours']:,.0f}", f"{run['cost']:,.0f}"]
        table.add_row(*cells)
    return table


def _terms(priced: Priced) -> Table:
    """Every term of the step's time and of the memory, with what it is."""
    table = Table(title=str(priced.plan), box=None, title_justify="left", header_style="bold")
    table.add_column("term")
    table.add_column("", justify="right")
    step, memory = priced.step, priced.memory
    for field in fields(step):
        if field.name not in ("flops", "peak"):
            table.add_row(f"seconds: {field.name}", f"{getattr(step, field.name):.3f}")
    for field in fields(memory):
        table.add_row(f"GiB: {field.name}", f"{getattr(memory, field.name) / GIB:.2f}")
    beside = needed_bytes(memory, priced.plan) - memory.total
    table.add_row("GiB: driver, NCCL, gaps", f"{beside / GIB:.2f}")
    table.add_row("model FLOPs of a step", f"{step.flops:.4g}")
    return table
