"""A JupyterLab server of a test's own, and a page in a real Chromium that a test can use like a person.

Nothing is mocked: the server, the kernels and the ranks behind them are those of `make lab`. To look at a page:
`python -m tests.browser.lab notebooks/05_data_parallel.ipynb shot.png --run --cell 12`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parents[2]
FLAGS = (
    "--no-sandbox",  # root in a container has no other way
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
SETTINGS = {
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/notebook-extension/tracker": {"windowingMode": "none"},  # every cell is in the page, seen or not
    "@jupyterlab/docmanager-extension/plugin": {"autosave": False},
}
OTHER_EXTENSIONS = ("@jupyter/nbgrader", "jupyterlab-jupytext")  # they may be installed; the course does not need them
NOTEBOOK = "window.jupyterapp.shell.currentWidget"


def chromium() -> str | None:
    """The browser on this machine. None is downloaded."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def wait_until(condition: Callable[[], Any], what: str, seconds: float = 60) -> Any:
    """The condition's first true value; a failure that names `what` once the time is up."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds:.0f} s for {what}")
        time.sleep(0.05)
    return value


def answers(address: str) -> bool:
    """Whether a server answers there (JupyterLab prints its address a moment before it listens)."""
    try:
        with urllib.request.urlopen(address, timeout=30) as answer:
            return answer.status == 200
    except urllib.error.URLError:
        return False


class LabServer:
    """JupyterLab over `folder`, on a free port of the loopback interface, with throw-away settings."""

    def __init__(self, folder: Path, scratch: Path) -> None:
        self.token = secrets.token_hex(16)
        self.log = scratch / "server.log"
        for name, settings in SETTINGS.items():
            path = scratch / "settings" / f"{name}.jupyterlab-settings"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(settings))
        switched_off = scratch / "config" / "labconfig" / "page_config.json"
        switched_off.parent.mkdir(parents=True)
        switched_off.write_text(json.dumps({"disabledExtensions": dict.fromkeys(OTHER_EXTENSIONS, True)}))
        environment = os.environ | {
            "JUPYTER_CONFIG_DIR": str(scratch / "config"),
            "JUPYTER_DATA_DIR": str(scratch / "data"),
            "JUPYTER_RUNTIME_DIR": str(scratch / "run"),
            "JUPYTERLAB_SETTINGS_DIR": str(scratch / "settings"),
            "JUPYTERLAB_WORKSPACES_DIR": str(scratch / "workspaces"),
            "IPYTHONDIR": str(scratch / "ipython"),
            "COURSE_PROGRESS": str(scratch / "progress.json"),
        }
        arguments = [
            "--no-browser",
            "--allow-root",
            f"--ServerApp.root_dir={folder}",
            "--ServerApp.ip=127.0.0.1",
            "--ServerApp.port=0",
            f"--IdentityProvider.token={self.token}",
            "--LabApp.expose_app_in_browser=True",
            "--LabApp.news_url=None",
        ]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "jupyterlab", *arguments],
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            self.url = wait_until(lambda: self._address(), f"JupyterLab to start (see {self.log})")
        except BaseException:
            self.close()
            raise

    def _address(self) -> str | None:
        if self.process.poll() is not None:
            raise AssertionError(f"JupyterLab ended at once:\n{self.log.read_text()[-2000:]}")
        running = re.search(r"(http://127\.0\.0\.1:\d+)/lab", self.log.read_text())
        return running[1] if running and answers(f"{running[1]}/api") else None

    def descendants(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def kernels(self) -> list[psutil.Process]:
        return [child for child in self.descendants() if "ipykernel_launcher" in _command(child)]

    def behind_kernels(self) -> list[psutil.Process]:
        """The processes that kernels started: fork servers and ranks."""
        return [child for kernel in self.kernels() for child in kernel.children(recursive=True)]

    def close(self) -> None:
        """End the server and whatever is still under it."""
        children = self.descendants() if self.process.poll() is None else []
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for child in children:
            if child.is_running():
                child.kill()


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


class LabPage:
    """One notebook in the browser. Cells are named by their id in the file."""

    def __init__(self, page: Any, server: LabServer) -> None:
        self.page = page
        self.server = server
        self.page_errors: list[str] = []
        page.on("pageerror", lambda error: self.page_errors.append(str(error)))

    def open(self, path: str) -> None:
        """Open a notebook and wait until its kernel can take code."""
        self.page.goto(f"{self.server.url}/lab/tree/{path}?reset&token={self.server.token}")
        self.page.wait_for_selector(".jp-Notebook .jp-Cell")
        self.wait_for_kernel()

    def wait_for_kernel(self) -> None:
        # Not the status icon: a run command sent before the session is ready opens a dialog and waits for ever.
        status = f"{NOTEBOOK}?.sessionContext?.session?.kernel?.status"
        self.page.wait_for_function(f"() => window.jupyterapp && {status} === 'idle'")

    def command(self, name: str) -> None:
        """Start a command of JupyterLab without waiting for it: it may wait on a dialog."""
        self.page.evaluate("name => { window.jupyterapp.commands.execute(name); }", name)

    def index_of(self, cell_id: str) -> int:
        find = f"id => {NOTEBOOK}.content.widgets.findIndex(cell => cell.model.id === id)"
        index = self.page.evaluate(find, cell_id)
        if index < 0:
            raise AssertionError(f"the page has no cell {cell_id}")
        return index

    def cell(self, cell_id: str) -> Any:
        """The cell's element, made the active one and scrolled to."""
        index = self.index_of(cell_id)
        activate = "i => { const all = NOTEBOOK.content; all.deselectAll(); all.activeCellIndex = i; }"
        self.page.evaluate(activate.replace("NOTEBOOK", NOTEBOOK), index)
        cell = self.page.locator(".jp-Notebook .jp-Cell").nth(index)
        cell.scroll_into_view_if_needed()
        return cell

    def code_cells(self) -> list[str]:
        """Ids of the page's code cells, in order."""
        code = f"{NOTEBOOK}.content.widgets.filter(cell => cell.model.type === 'code')"
        return self.page.evaluate(f"() => {code}.map(cell => cell.model.id)")

    def source(self, cell_id: str) -> str:
        return self.page.evaluate(
            f"i => {NOTEBOOK}.content.widgets[i].model.sharedModel.source", self.index_of(cell_id)
        )

    def type_into(self, cell_id: str, text: str) -> None:
        """Replace what stands in a code cell, by keyboard."""
        self.cell(cell_id).locator(".cm-content").click()
        self.page.keyboard.press("Control+A")
        self.page.keyboard.insert_text(text)

    def run(self, cell_id: str) -> str:
        """Run a cell with Ctrl+Enter, wait until it is done, and give its output as text."""
        cell = self.cell(cell_id)
        self._forget_count(cell_id)
        cell.locator(".cm-content").click()
        self.page.keyboard.press("Control+Enter")
        self._wait_until_run(cell_id)
        return self.output(cell_id)

    def run_all(self) -> None:
        """Run every cell of a page without outputs, and wait for the last one, or for an error."""
        runs = "cell => cell.model.type === 'code' && cell.model.sharedModel.source.trim()"
        last = self.page.evaluate(f"() => {NOTEBOOK}.content.widgets.filter({runs}).at(-1).model.id")
        self._forget_count(last)
        self.command("notebook:run-all-cells")
        self._wait_until_run(last, stops_at_error=True)

    def _forget_count(self, cell_id: str) -> None:
        """Clear a cell's number, so that the next one means it was run; a restarted kernel counts from 1 again."""
        self.page.evaluate(
            f"i => {{ {NOTEBOOK}.content.widgets[i].model.executionCount = null; }}", self.index_of(cell_id)
        )

    def _wait_until_run(self, cell_id: str, *, stops_at_error: bool = False) -> None:
        """Wait until a cell has a number (or an error has stopped the page before it) and its kernel is idle again."""
        count, index = f"i => {NOTEBOOK}.content.widgets[i].model.executionCount", self.index_of(cell_id)
        wait_until(
            lambda: self.page.evaluate(count, index) or (stops_at_error and self.errors()),
            f"cell {cell_id} to run",
            180,
        )
        self.wait_for_kernel()

    def output(self, cell_id: str) -> str:
        outputs = (
            self.page.locator(".jp-Notebook .jp-Cell").nth(self.index_of(cell_id)).locator(".jp-OutputArea-output")
        )
        return "\n".join(outputs.all_inner_texts())

    def errors(self) -> list[str]:
        """Names and messages of the error outputs on the page, but for cells that are meant to raise."""
        meant = "cell.model.getMetadata('tags')?.includes('raises-exception')"
        outputs = f"{NOTEBOOK}.content.widgets.flatMap(cell => {meant} ? [] : cell.model.outputs?.toJSON() ?? [])"
        errors = self.page.evaluate(f"() => {outputs}.filter(output => output.output_type === 'error')")
        return [f"{error['ename']}: {error['evalue']}" for error in errors]

    def restart_kernel(self) -> None:
        """Restart through the dialog that a person sees, and wait for the new kernel."""
        old = {kernel.pid for kernel in self.server.kernels()}
        self.command("notebook:restart-kernel")
        self.page.locator(".jp-Dialog .jp-mod-accept").click()
        wait_until(lambda: {kernel.pid for kernel in self.server.kernels()} - old, "a new kernel")
        self.wait_for_kernel()

    def shoot(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=str(path))


@contextmanager
def browser_page(width: int = 1280, height: int = 1000) -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        try:
            page = browser.new_page(viewport={"width": width, "height": height})
            page.set_default_timeout(60_000)
            yield page
        finally:
            browser.close()


def main() -> None:
    """Save a picture of a notebook."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("notebook")
    parser.add_argument("picture", type=Path)
    parser.add_argument("--run", action="store_true", help="run all cells first")
    parser.add_argument("--cell", help="id or number of the cell to scroll to")
    parser.add_argument("--size", default="1280x1000", help="in pixels; a tall one shows a whole page")
    parser.add_argument("--plain", action="store_true", help="without the file browser")
    options = parser.parse_args()
    width, height = map(int, options.size.split("x"))
    with tempfile.TemporaryDirectory() as scratch, browser_page(width, height) as page:
        server = LabServer(ROOT, Path(scratch))
        try:
            lab = LabPage(page, server)
            lab.open(options.notebook)
            if options.plain:
                lab.command("application:toggle-left-area")
            if options.run:
                lab.run_all()
            if options.cell is not None:
                ids = page.evaluate(f"() => {NOTEBOOK}.content.widgets.map(cell => cell.model.id)")
                lab.cell(ids[int(options.cell)] if options.cell.isdigit() else options.cell)
            lab.shoot(options.picture)
        finally:
            server.close()


if __name__ == "__main__":
    main()
