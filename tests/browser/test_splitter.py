"""The layer splitter under a real mouse, finger and keyboard, in JupyterLab and in Notebook 7, on live ranks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from course.grading.notebooks import KERNELSPEC
from tests.browser.lab import LabPage, wait_until

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(300)]

IMPORTS = """import torch
from torch import nn
from course import Ranks
from course.parallel.pipeline import Pipeline
from course.parallel.stages import cut_model
from course.trace.replay import replay
from course.widgets.splits import SCHEDULES
from course.widgets import LayerSplitter
ranks = Ranks(3)"""
TRAIN = """def step(cuts, microbatches, name, rank, world_size):
    torch.manual_seed(0)
    head = nn.Sequential(*(nn.Linear(32, 32) for _ in range(4)))
    model = nn.Sequential(*(nn.Linear(32, 32) for _ in range(30)), head)
    schedule = SCHEDULES[name](world_size, microbatches)
    pipeline = Pipeline(cut_model(model, cuts), schedule, loss_fn=nn.functional.mse_loss)
    pipeline.step(torch.ones(64, 32), torch.zeros(64, 32))

def train(cuts, microbatches, name):
    measured = ranks.run(step, cuts, microbatches, name).trace
    return measured, replay(measured)"""
CELLS = [
    new_code_cell(IMPORTS, id="imports"),
    new_code_cell(TRAIN, id="train"),
    new_code_cell("splitter = LayerSplitter(run=train)\nsplitter", id="widget"),
    new_code_cell("splitter.code, splitter.cuts, splitter.round, splitter.kind", id="state"),
    new_code_cell("splitter.measured_code, len({(s.rank, s.name) for s in splitter.measured.spans})", id="run"),
    new_code_cell("ranks.close()", id="end"),
]


class NotebookPage(LabPage):
    """The same page in Notebook 7, which the server of JupyterLab serves too."""

    def open(self, path: str) -> None:
        self.page.goto(f"{self.server.url}/notebooks/{path}?token={self.server.token}")
        self.page.wait_for_selector(".jp-Notebook .jp-Cell")
        self.wait_for_kernel()
        self.page_errors.clear()  # Notebook 7 throws one as it loads the settings of an extension that is switched off


def opened(front_end: str, lab: Callable[[Path], LabPage], tmp_path: Path) -> LabPage:
    """The page with its imports run, in one of the two front ends."""
    pages = tmp_path / "pages"
    pages.mkdir()
    nbformat.write(new_notebook(cells=CELLS, metadata={"kernelspec": KERNELSPEC}), pages / "split.ipynb")
    config = tmp_path / "server0" / "config" / "jupyter_notebook_config.json"
    config.parent.mkdir(parents=True)
    config.write_text(json.dumps({"JupyterNotebookApp": {"expose_app_in_browser": True}}))
    page = lab(pages)
    if front_end == "notebook":
        page = NotebookPage(page.page, page.server)
    page.open("split.ipynb")
    for cell in ("imports", "train", "widget"):
        page.run(cell)
    return page


class Splitter:
    """The widget on a page, as a person finds it: by roles and labels."""

    def __init__(self, page: LabPage) -> None:
        self.cell = page.cell("widget")
        self.keys = page.page.keyboard
        self.mouse = page.page.mouse
        self.devtools = page.page.context.new_cdp_session(page.page)

    def handle(self, index: int):
        return self.cell.get_by_role("slider", name=f"cut between stage {index} and stage {index + 1}")

    def field(self, label: str):
        return self.cell.get_by_label(label)

    def button(self, name: str):
        return self.cell.get_by_role("button", name=name)

    def at(self, *cuts: int) -> None:
        """Wait until the handles stand there."""
        found = lambda: [int(self.handle(i).get_attribute("aria-valuenow")) for i in range(len(cuts))]  # noqa: E731
        wait_until(lambda: found() == list(cuts), f"cuts at {cuts}", 20)

    def says(self, words: str) -> None:
        wait_until(lambda: words in self.cell.inner_text(), f"the widget to say {words!r}", 60)

    def where(self, index: int, cut: int) -> tuple[tuple[float, float], tuple[float, float]]:
        """Middle of a handle's grip, and the place of a cut at the same height."""
        grip = self.handle(index).locator(".grip").bounding_box()
        track = self.cell.locator(".splitter .rail").bounding_box()
        height = grip["y"] + grip["height"] / 2
        return (grip["x"] + grip["width"] / 2, height), (track["x"] + track["width"] * cut / 30, height)

    def drag(self, index: int, cut: int) -> None:
        start, end = self.where(index, cut)
        self.mouse.move(*start)
        self.mouse.down()
        self.mouse.move(*end, steps=8)
        self.mouse.up()

    def swipe(self, index: int, cut: int) -> None:
        (x, y), (end, _) = self.where(index, cut)
        places = [x + (end - x) * part / 8 for part in range(9)]
        for kind, place in [("touchStart", x), *(("touchMove", place) for place in places)]:
            self.devtools.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": place, "y": y}]})
        self.devtools.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})

    def press(self, target, *keys: str) -> None:
        target.focus()
        for key in keys:
            self.keys.press(key)


# Press a key on a handle and read the picture twice: as the browser moved it at once, and as the kernel then sends it.
MOVE = """([index, key]) => new Promise(done => {
    const picture = document.querySelector('.splitter .picture');
    const read = () => ({
        cuts: picture.querySelector('.strips').dataset.cuts,
        words: picture.innerText,
        bars: [...picture.querySelectorAll('[data-row] i')].map(
            bar => [bar.className, parseFloat(bar.style.left), parseFloat(bar.style.width || 0)]),
    });
    let moved;
    const answered = new MutationObserver(() => { answered.disconnect(); done([moved, read()]); });
    answered.observe(picture, {childList: true});
    document.querySelectorAll('.splitter .handle')[index].dispatchEvent(new KeyboardEvent('keydown', {key}));
    moved = read();
})"""
CASES = {  # code -> keys pressed on a handle; the memory limit is overstepped on the way
    "10-10-10·m8·1F1B": [(0, "ArrowRight"), (0, "PageUp"), (1, "End"), (1, "Home")],
    "12-11-7·m16·ZB-H1": [(1, "ArrowLeft"), (0, "PageDown")],
    "8-8-7-7·m5·GPipe": [(2, "PageDown"), (0, "Home")],
    "1-2-2·m3·1F1B": [(1, "ArrowRight")],  # the embedding, alone on a stage, costs nothing
    "12-12-12-12-12-12-12-12·m9·1F1B": [(6, "ArrowRight"), (3, "PageUp")],
}


def test_the_browser_moves_the_bars_as_the_kernel_does(lab: Callable[[Path], LabPage], tmp_path: Path) -> None:
    page = opened("lab", lab, tmp_path)
    for code, moves in CASES.items():
        page.type_into("state", f"splitter.round = 5\nsplitter.memory_limit = 30\nsplitter.code = {code!r}")
        page.run("state")
        wait_until(lambda code=code: code in page.page.locator(".splitter .picture").inner_text(), code, 20)
        for move in moves:
            moved, answer = page.page.evaluate(MOVE, move)
            assert moved["cuts"] == answer["cuts"] and moved["words"] == answer["words"], (code, move)
            assert [name for name, *_ in moved["bars"]] == [name for name, *_ in answer["bars"]]
            pairs = zip(moved["bars"], answer["bars"], strict=True)
            assert max(abs(a - b) for one, other in pairs for a, b in zip(one[1:], other[1:], strict=True)) < 0.002
    page.run("end")
    assert page.errors() == [] and page.page_errors == []


@pytest.mark.parametrize("front_end", ["lab", "notebook"])
def test_cuts_are_moved_rounds_won_and_a_split_run(
    front_end: str, lab: Callable[[Path], LabPage], shot: Callable[[LabPage, str], None], tmp_path: Path
) -> None:
    page = opened(front_end, lab, tmp_path)
    splitter = Splitter(page)
    splitter.at(10, 20)
    splitter.says("bubble 31.3 %")
    assert splitter.field("micro-batches").is_disabled() and splitter.field("schedule").is_disabled()

    splitter.drag(1, 25)
    splitter.at(10, 25)
    splitter.swipe(1, 23)
    splitter.at(10, 23)
    splitter.says("Predicted: 10-13-7·m8·1F1B")
    assert splitter.handle(1).get_attribute("aria-valuetext") == "stage 1 has 13 layers, stage 2 has 7"
    splitter.press(splitter.handle(0), "ArrowRight", "ArrowRight")
    splitter.says("Round 1 won. The step takes 348, of which 21.8 % is bubble.")
    splitter.says("Over the limit of 27 stored layers: stage 0.")
    shot(page, f"splitter {front_end} round 2")

    splitter.press(splitter.handle(1), "Home")  # pushes the other cut along
    splitter.at(1, 2)
    splitter.press(splitter.handle(0), "PageUp", "End", "ArrowLeft")
    splitter.at(27, 29)
    splitter.press(splitter.button("Next round"), "Enter")
    splitter.says("Round 3 of 4.")
    splitter.press(splitter.field("micro-batches"), "ArrowUp", "Tab")
    splitter.says("27-2-1·m9·1F1B")
    splitter.press(splitter.button("Next round"), "Enter")
    splitter.says("Round 4 of 4.")
    splitter.press(splitter.field("schedule"), "g", "Tab")
    splitter.says("27-2-1·m9·GPipe")

    splitter.press(splitter.field("share code"), "Control+a")
    splitter.keys.insert_text("9-13-8 m4 1F1C")
    splitter.keys.press("Enter")
    splitter.says("'1F1C' is not one of GPipe, 1F1B, ZB-H1")
    splitter.press(splitter.field("share code"), "Control+a")
    splitter.keys.insert_text("9-13-8 m4 1f1b")
    splitter.keys.press("Enter")
    splitter.at(9, 22)
    assert page.run("state") == "('9-13-8·m4·1F1B', [9, 22], 4, 'drag')"

    splitter.press(splitter.button("Run it"), "Enter")
    splitter.says("Replayed: 9-13-8·m4·1F1B, bubble")
    assert page.run("run") == "('9-13-8·m4·1F1B', 24)"
    shot(page, f"splitter {front_end} run")
    splitter.press(splitter.field("as text"), "Space")
    splitter.press(splitter.field("layers before cut 2"), "ArrowUp", "Tab")
    splitter.says("Predicted: 9-14-7·m4·1F1B")
    assert page.run("state") == "('9-14-7·m4·1F1B', [9, 23], 4, 'text')"
    shot(page, f"splitter {front_end} text")
    page.run("end")
    assert page.errors() == [] and page.page_errors == []
