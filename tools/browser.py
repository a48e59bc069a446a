"""Real JupyterLab in a real browser, for tests/browser and benchmarks/live.py; needs [dev]."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, Playwright, sync_playwright

from tools import notebooks
from tools.lab import SETTINGS as LAB_SETTINGS
from tools.lab import arguments, copy_missing

TOKEN = "local"
# Chromium asks its maker for updates and settings at every start; a test needs none of that.
QUIET = ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
# Only cells in view are in the page otherwise.
SETTINGS = {"@jupyterlab/notebook-extension/tracker": {"windowingMode": "none"}}
# Python calls this file's hook for every name that the server or a kernel looks up.
WATCH = """
import os, sys
def hook(event, args):
    if event == "socket.getaddrinfo" and args[0] not in (None, "", "localhost", "127.0.0.1", "::1"):
        open(os.environ["WATCH_LOG"], "a").write(f"{args[0]}\\n")
sys.addaudithook(hook)
"""


class Lab:
    """A running JupyterLab: its ``url``, its folder ``root``, and the hosts it asked for."""

    def __init__(self, root: Path, url: str, watch_log: Path):
        self.root, self.url, self._watch_log = root, url, watch_log

    def hosts_asked(self) -> list[str]:
        """All hosts that the server or a kernel has asked for, this machine left out."""
        return self._watch_log.read_text().split() if self._watch_log.exists() else []


@contextmanager
def lab(settings: Path = LAB_SETTINGS) -> Iterator[Lab]:
    """Serve copies of all notebooks from a temporary folder, as make lab does from work/.

    ``settings`` are those of `arguments`: make slides has its own.
    """
    with tempfile.TemporaryDirectory() as folder, socket.socket() as probe:
        home, root = Path(folder), Path(folder) / "work"
        copy_missing(notebooks.SOURCE, root)
        for name, ours in SETTINGS.items():
            path = home / "settings" / f"{name}.jupyterlab-settings"
            path.parent.mkdir(parents=True)
            path.write_text(json.dumps(ours))
        (home / "sitecustomize.py").write_text(WATCH)
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        environment = {
            **os.environ,
            "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
            "JUPYTER_CONFIG_DIR": str(home / "config"),
            # The helpers of this tree, wherever the environment has installed others.
            "PYTHONPATH": os.pathsep.join([folder, str(notebooks.ROOT)]),
            "WATCH_LOG": str(home / "hosts"),
            # What is clicked here is no learner's progress.
            "ATTENTION_PROGRESS": str(root / "progress.jsonl"),
        }
        # Pictures and numbers as a learner sees them.
        for ours in ("ATTENTION_STORED", "ATTENTION_STRICT"):
            environment.pop(ours, None)
        start = notebooks.names(root)[0].name
        more = ["--no-browser", f"--port={port}", f"--IdentityProvider.token={TOKEN}"]
        with open(home / "log", "w") as log:
            server = subprocess.Popen(
                [sys.executable, "-m", "jupyterlab", *arguments(root, start, settings), *more],
                stdout=log,
                stderr=log,
                env=environment,
            )
        try:
            _wait_for(port, server, home / "log")
            yield Lab(root, f"http://127.0.0.1:{port}", home / "hosts")
        finally:
            server.terminate()
            try:
                server.wait(60)  # it asks each kernel to end, and waits for it
            except subprocess.TimeoutExpired:
                server.kill()  # kernels without a server end by themselves
                server.wait()


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a headless Chromium: Debian's one without windows, or the one that `executable` finds.

    Windows that nobody sees take a processor half a second for each context.
    """
    without_windows = shutil.which("chromium-headless-shell")
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM") or without_windows or executable(playwright),
            args=QUIET + (["--no-sandbox"] if root else []),
        )
        yield browser
        browser.close()


def executable(playwright: Playwright | None = None) -> str:
    """Where Chromium is: $CHROMIUM, the system's one, or the one playwright installed.

    Raises
    ------
    SystemExit
        In one sentence, where there is none.
    """
    names = ("chromium", "chromium-browser", "google-chrome")
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if found is None and playwright is None:
        with sync_playwright() as playwright:
            return executable(playwright)
    path = found or playwright.chromium.executable_path
    if not Path(path).exists():
        notebooks.stop(
            f"There is no Chromium here{f' at {found}' if found else ''}: install it (Debian, "
            "Ubuntu: apt install chromium; elsewhere: .venv/bin/playwright install chromium), "
            "or name one with CHROMIUM=/path/to/chromium, then run the same command again."
        )
    return path


def open_notebook(page: Page, url: str) -> None:
    """Open a page of JupyterLab and wait until its notebook has a kernel that waits for work."""
    page.goto(url)
    page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=90_000)
    page.wait_for_selector("text=/\\| Idle/", timeout=60_000)


def run_all(page: Page) -> None:
    """Choose Run > Run All Cells and wait for the last one."""
    page.click("li.lm-MenuBar-item:has-text('Run')")
    page.click("li.lm-Menu-item:has-text('Run All Cells') >> nth=0")
    page.wait_for_timeout(500)
    page.wait_for_function(
        """() => ![...document.querySelectorAll('.jp-InputPrompt')]
                 .some(prompt => prompt.textContent.includes('[*]'))""",
        timeout=120_000,
    )
    page.wait_for_timeout(500)  # widgets draw themselves a moment after their cell is done


def _wait_for(port: int, server: subprocess.Popen, log: Path) -> None:
    """Wait until the server answers."""
    for _ in range(240):
        if server.poll() is not None:
            raise RuntimeError(f"JupyterLab ended at once:\n{log.read_text()}")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.25)
    raise RuntimeError(f"JupyterLab did not answer within 60 s:\n{log.read_text()}")
