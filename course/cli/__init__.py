"""The `course` command: lab, doctor, train, plan, grade, progress, build.

Words and exit codes only: what the commands do lives in the rooms they call, which are loaded when asked for.
Exit codes: 0 done, 1 the work failed or something is wrong, 2 the command was used wrongly.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NamedTuple, NoReturn

import psutil
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from course.errors import CourseError

CGROUP = Path("/sys/fs/cgroup")
FIRST_LESSON = "notebooks/00_start_here.ipynb"


def _examples(*commands: str) -> str:
    """The end of a help page; empty lines keep the commands on lines of their own."""
    return "\n\n".join(["[bold]Examples[/]", *(f"  $ course {command}" for command in commands)])


app = typer.Typer(
    help="An interactive course on distributed machine learning, on real torch.distributed ranks.",
    epilog=_examples("lab", "doctor", "grade exercises/05_data_parallel.ipynb"),
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command line; what the course cannot do ends in one sentence and exit code 1."""
    try:
        app()
    except CourseError as error:
        _fail(str(error))


def _say(message: str) -> None:
    Console(stderr=True, highlight=False, soft_wrap=True).print(f"[bold red]course:[/] {escape(message)}")


def _fail(message: str, code: int = 1) -> NoReturn:
    _say(message)
    raise SystemExit(code)


def _checkout() -> Path:
    """The folder with notebooks/ and solutions/: this one, one above it, or where the package lies."""
    here = Path.cwd()
    for folder in (here, *here.parents, Path(__file__).resolve().parents[2]):
        if (folder / "pyproject.toml").is_file() and (folder / "course" / "cli").is_dir():
            return folder
    _fail(f"the course's folder (the one with notebooks/) is neither {here} nor above it: change into it first", 2)


# lab


@app.command(epilog=_examples("lab", "lab exercises/05_data_parallel.ipynb", "lab --no-browser --port 9000"))
def lab(
    notebook: Annotated[str, typer.Argument(help="The page to open, from the top of the checkout.")] = FIRST_LESSON,
    port: Annotated[int, typer.Option(help="Port on this machine; the next free one is taken if it is in use.")] = 8888,
    browser: Annotated[
        bool | None, typer.Option("--browser/--no-browser", help="Open a browser. By default: where there is a screen.")
    ] = None,
) -> None:
    """Open JupyterLab on lesson 00, or on another page."""
    root = _checkout()
    if not (root / notebook).is_file():
        _fail(f"{notebook} was asked for, and there is no such page in {root}: see notebooks/ and exercises/", 2)
    from jupyterlab.labapp import LabApp

    screen = sys.platform in ("win32", "darwin") or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")))
    arguments = [
        f"--ServerApp.root_dir={root}",
        "--ServerApp.ip=127.0.0.1",  # this machine alone; "localhost" may mean two sockets
        f"--ServerApp.port={port}",
        f"--LabApp.default_url=/lab/tree/{Path(notebook).as_posix()}",
        "--LabApp.news_url=None",  # no question about news on the first page a learner sees
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]
    if not (screen if browser is None else browser):
        arguments.append("--no-browser")
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        arguments.append("--allow-root")
    print("Starting JupyterLab. Its address is printed below; Ctrl-C twice ends it.", flush=True)
    LabApp.launch_instance(arguments)


# doctor


class Finding(NamedTuple):
    """One line of the doctor's table. `good`: True, False (this stops the course), or None (a fact, or optional)."""

    what: str
    good: bool | None
    says: str


@app.command(epilog=_examples("doctor", "doctor --quick"))
def doctor(
    quick: Annotated[bool, typer.Option("--quick", help="Look only; do not start two ranks to see them work.")] = False,
) -> None:
    """Say what this machine can run, and why not. Exit code 1 if ranks cannot run here."""
    table = Table(box=None, show_header=False, pad_edge=False)
    marks = {True: "[green]ok[/]", False: "[red]no[/]", None: "--"}
    wrong = []
    with Console().status("looking around") as status:
        for finding in _findings():
            table.add_row(marks[finding.good], finding.what, escape(finding.says))
            wrong += [finding] if finding.good is False else []
        if not quick and not wrong:
            status.update("starting two ranks")
            finding = _two_ranks()
            table.add_row(marks[finding.good], finding.what, escape(finding.says))
            wrong += [finding] if finding.good is False else []
    Console().print(table)
    if wrong:
        _fail("ranks cannot run here: " + "; ".join(f"{w.what}: {w.says}" for w in wrong))


def _findings() -> Iterator[Finding]:
    new_enough = sys.version_info >= (3, 11)
    yield Finding("Python", new_enough, f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    cores = usable_cores()
    shown = os.cpu_count() or cores
    limited = f" of {shown}: this process may not use the others" if cores < shown else ""
    yield Finding("cores", None, f"{cores}{limited}")
    free, total = usable_memory()
    short = "" if total >= 2e9 else ": below 2 GB, keep to 2 ranks"
    yield Finding("memory", None, f"{free / 1e9:.1f} GB free of {total / 1e9:.1f} GB{short}")
    if Path("/dev/shm").is_dir():
        room = shutil.disk_usage("/dev/shm").total / 1e6
        yield Finding("/dev/shm", None, f"{room:,.0f} MB; the ranks do not use it, a DataLoader's workers do")
    yield from _torch_findings()
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    yield Finding("Chromium", None, chromium or "not found; only the browser tests want it")


def _torch_findings() -> Iterator[Finding]:
    try:
        import torch
        import torch.distributed as dist
    except Exception as error:  # a broken wheel raises OSError, a missing one ImportError
        yield Finding("PyTorch", False, f"cannot be loaded ({error}): install it again with `make lab`")
        return
    yield Finding("PyTorch", True, torch.__version__)
    gloo = dist.is_available() and dist.is_gloo_available()
    yield Finding("gloo", gloo, "ranks on CPU processes" if gloo else "missing from this build of PyTorch")
    num_gpus = torch.cuda.device_count()
    names = ", ".join(sorted({torch.cuda.get_device_name(number) for number in range(num_gpus)}))
    why_not = "this PyTorch has no CUDA" if torch.version.cuda is None else "no device is visible"
    yield Finding("GPUs", None, f"{num_gpus} ({names})" if num_gpus else f"none: {why_not}")
    nccl = dist.is_available() and dist.is_nccl_available()
    if nccl and num_gpus:
        says = f"up to {num_gpus} ranks run on GPUs of their own; more ranks than that run on the CPU"
    else:
        says = "not used: it needs a GPU for each rank" if nccl else "not in this build of PyTorch; it needs GPUs"
    yield Finding("NCCL", None, says)


def _two_ranks() -> Finding:
    """Start two ranks and let them add."""
    try:
        from course.ranks import Ranks

        with Ranks(2, live=False) as ranks:
            sums = ranks.run(_sum_of_ranks, timeout=60).values
            backend = ranks.backend
    except CourseError as error:
        return Finding("two ranks", False, str(error))
    right = sums == [1.0, 1.0]
    return Finding("two ranks", right, f"added 0 and 1 over {backend} and got {sums[0]:g} and {sums[1]:g}")


def _sum_of_ranks(rank: int, device: str) -> float:
    import torch
    import torch.distributed as dist

    total = torch.tensor(float(rank), device=device)
    dist.all_reduce(total)
    return total.item()


def usable_cores() -> int:
    """Cores this process may use: its affinity, and the cgroup's quota where a container has one."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for quota in (_cgroup("cpu.max"), _cgroup("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        if len(quota) == 2 and quota[0] > 0:
            cores = min(cores, max(1, round(quota[0] / quota[1])))
    return cores


def usable_memory() -> tuple[int, int]:
    """Bytes free and in all, of the machine, or of the container where that has less."""
    memory = psutil.virtual_memory()
    free, total = memory.available, memory.total
    for limit in (
        _cgroup("memory.max", "memory.current"),
        _cgroup("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        if len(limit) == 2 and limit[0] < total:
            free, total = min(free, limit[0] - limit[1]), limit[0]
    return free, total


def _cgroup(*files: str) -> list[int]:
    """The numbers in files of this container's cgroup (the first name of a pair is version 2's); none without limit."""
    try:
        return [int(word) for file in files for word in (CGROUP / file).read_text().split()]
    except (OSError, ValueError):  # no such file, or the word "max"
        return []


# train


@app.command(
    epilog=_examples(
        "train --layout dp=2,tp=2 --steps 100",
        "train --layout dp=2,pp=2,tp=2 --checkpoints runs/a --every 50 --log-file runs/a.jsonl",
    )
    + "\n\n  $ torchrun --nproc-per-node 4 -m course.cli train --layout dp=2,tp=2"
)
def train(
    layout: Annotated[str, typer.Option(help="Ranks along each axis, as in dp=2,pp=2,tp=2.")] = "dp=2",
    steps: Annotated[int, typer.Option(min=1, help="Steps in all; a resumed run makes those that are left.")] = 100,
    batch: Annotated[int, typer.Option(min=1, help="Windows of 64 bytes of text a step, over all ranks.")] = 32,
    microbatches: Annotated[int, typer.Option(min=1, help="Pieces of a rank's share in the pipeline.")] = 1,
    accumulate: Annotated[int, typer.Option(min=1, help="Parts of a rank's share, one after another.")] = 1,
    lr: Annotated[float, typer.Option(help="Step size of AdamW.")] = 5e-4,
    clip: Annotated[float, typer.Option(help="Largest norm of the gradient.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Of the weights and of the order of the text.")] = 0,
    bfloat16: Annotated[bool, typer.Option("--bfloat16", help="Compute in bfloat16; weights stay in float32.")] = False,
    checkpoints: Annotated[
        Path | None, typer.Option(help="Folder for checkpoints; training goes on from the last one in it.")
    ] = None,
    every: Annotated[int, typer.Option(min=0, help="Steps between two checkpoints; 0: only after the last.")] = 0,
    log: Annotated[Path | None, typer.Option("--log-file", help="A file that gets a line of JSON a step.")] = None,
    trace: Annotated[Path | None, typer.Option(help="A file for the run's trace, to open in Perfetto.")] = None,
) -> None:
    """Train the course's GPT under a layout, on ranks of its own or on those that torchrun has started."""
    from course.cli.train import run_training
    from course.parallel.training import Training
    from course.spec.layout import Layout

    training = Training(
        layout=Layout.parse(layout), steps=steps, batch=batch, microbatches=microbatches, accumulate=accumulate, lr=lr,
        clip=clip, seed=seed, bfloat16=bfloat16, checkpoints=checkpoints, every=every,
    )  # fmt: skip
    run_training(training, log=log, trace=trace)


# plan


@app.command(
    epilog=_examples(
        "plan --model llama-3.1-405b --gpus 16384 --chip h100 --global-batch 2048 --sequence 8192",
        "plan --model llama-3.1-8b --gpus 8 --global-batch 64 --layout dp=8,zero=3,recompute=full --explain",
    )
)
def plan(
    model: Annotated[str, typer.Option(help="A model by name, as llama-3.1-405b.")],
    gpus: Annotated[int, typer.Option(min=1, help="Chips there are.")],
    global_batch: Annotated[int, typer.Option(min=1, help="Sequences a step, over all chips.")],
    chip: Annotated[str, typer.Option(help="A chip by name, as h100.")] = "h100",
    sequence: Annotated[int, typer.Option(min=1, help="Tokens of a sequence.")] = 8192,
    precision: Annotated[str, typer.Option(help="bf16, fp8 or fp4.")] = "bf16",
    layout: Annotated[str, typer.Option(help="Price this one, as tp=8,pp=16,chunks=8,recompute=none.")] = "",
    best: Annotated[int, typer.Option(min=1, help="Layouts to show.")] = 5,
    tokens: Annotated[float, typer.Option(min=0, help="Tokens of a whole run, for hours and money.")] = 0.0,
    price: Annotated[float, typer.Option(help="Money an hour of one chip.")] = 0.0,
    goodput: Annotated[float, typer.Option(help="Share of the time that failures leave.")] = 1.0,
    alpa: Annotated[bool, typer.Option("--alpa", help="Cut layers into stages, and shard each, as Alpa does.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Show every term of the first layout.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Plain numbers: seconds, bytes, hours, money.")] = False,
) -> None:
    """Find the best layouts for a model on a cluster: memory, step time, utilisation, hours, money."""
    from course.cli.plan import Request, show_plans, show_stages

    request = Request(
        model=model, chip=chip, gpus=gpus, global_batch=global_batch, sequence=sequence, precision=precision,
        layout=layout, best=best, tokens=tokens, price=price, goodput=goodput,
    )  # fmt: skip
    if alpa:
        show_stages(request, as_json=as_json)
    else:
        show_plans(request, explain=explain, as_json=as_json)


# grade and progress


@app.command(
    epilog=_examples(
        "grade exercises/05_data_parallel.ipynb", "grade handed_in/*.ipynb --json", "grade page.ipynb --record"
    )
)
def grade(
    pages: Annotated[
        list[Path], typer.Argument(metavar="NOTEBOOK...", help="Solved pages.", exists=True, dir_okay=False)
    ],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a page and line, for scripts.")] = False,
    record: Annotated[bool, typer.Option("--record", help="Keep the points as your own progress.")] = False,
) -> None:
    """Grade the answers in notebooks, in processes of their own.

    Exit code 0: no answer is wrong (exercises that were not attempted do not count).

    Exit code 1: an answer fails a check, or a page could not be graded; the other pages are graded all the same.

    Exit code 2: a page is not there, or is a folder; nothing is graded.
    """
    failed = False
    for page in pages:
        try:
            failed |= not _grade_page(page, as_json, record)
        except CourseError as error:
            failed = True
            _say(str(error))
    if failed:
        raise typer.Exit(1)


def _grade_page(page: Path, as_json: bool, record: bool) -> bool:
    """Print the page's reports; whether none of its answers is wrong."""
    from course.grading.store import Store
    from course.grading.submission import grade_notebook

    reports = []
    for report in grade_notebook(page):
        reports.append(report)
        notes = Store.of_user().record(report.exercise, report.points).notes if record and report.attempted else ()
        if not as_json:
            print("\n".join([str(report), *(f"  note: {note}" for note in notes)]), end="\n\n", flush=True)
    points, total = sum(report.points for report in reports), sum(report.total for report in reports)
    if as_json:
        exercises = [report.to_dict() | {"points": report.points, "passed": report.passed} for report in reports]
        print(json.dumps({"page": str(page), "points": points, "total": total, "exercises": exercises}), flush=True)
    else:
        kept = "" if record else " (not recorded: --record keeps them as your progress)"
        print(f"{page.name}: {points} of {total} points{kept}", flush=True)
    return all(report.passed for report in reports if report.attempted)


@app.command(epilog=_examples("progress"))
def progress() -> None:
    """Show the points earned so far, exercise by exercise."""
    from course.grading import progress as earned

    print(earned())


# build


@app.command(epilog=_examples("build", "build --check", "build --run solutions/05_data_parallel.ipynb"))
def build(
    pages: Annotated[
        list[str] | None, typer.Argument(help="With --run: pages of solutions/ to run; all by default.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit code 1 if a build would change a file.")
    ] = False,
    run: Annotated[bool, typer.Option("--run", help="Run pages of solutions/ and store their text outputs.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite pages of exercises/ that hold answers.")] = False,
) -> None:
    """Make exercises/ from solutions/, and bring all notebooks into one form."""
    from course.grading import notebooks

    if (check and (run or force)) or (pages and not run):
        _fail("pages go with --run, and --check goes alone: see `course build --help`", 2)
    root = _checkout()
    built = notebooks.build(root, check=check, force=force)
    for path in built.changed:
        print(f"{'would change' if check else 'built'} {path.relative_to(root)}")
    if run and not built.faults:
        for path in [Path(page).resolve() for page in pages or sorted((root / "solutions").glob("*.ipynb"))]:
            print(f"running {path.name}", flush=True)
            notebooks.execute(path)
    if built.faults:
        _fail("\n        ".join(built.faults))
    if check and built.changed:
        _fail("run `course build` and commit what it writes")


if __name__ == "__main__":
    main()
