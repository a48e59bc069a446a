"""A hub of its own for the tests, on free ports, with two accounts that are removed at the end."""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from classroom import accounts
from tools import notebooks
from tools.hub_client import Browser

INSTALLED = Path(os.environ.get("HUB") or "/opt/attention-hub")
THIRD = "03_softmax_masking.ipynb"


class Hub:
    """A hub, its ``folder`` and ``url``, and the ``passwords`` of its students."""

    def __init__(self, folder: Path, port: int, passwords: dict[str, str]):
        self.folder, self.port, self.passwords = folder, port, passwords
        self.url = f"http://127.0.0.1:{port}"
        self.log = folder / "log"

    def start(self) -> None:
        """Start it as make hub does, and wait until it answers."""
        environment = {**os.environ, "HUB": str(self.folder), "PORT": str(self.port)}
        already = self.said().count("is now running")
        with open(self.log, "a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-B", "-m", "classroom.hub"],
                cwd=notebooks.ROOT,
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,  # a Ctrl-C in the tests is for the tests
            )
        until(lambda: self.said().count("is now running") > already, 60, self.said)

    def said(self) -> str:
        """All that the hub and its students' servers have written to the log."""
        return self.log.read_text() if self.log.exists() else ""

    def stop(self) -> None:
        """Press Ctrl-C."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(60)

    def enter(self, name: str) -> Browser:
        """A browser in which a student has logged in, with a server that runs."""
        browser = Browser(self.url, name)
        browser.login(self.passwords[name])
        browser.start_server()
        return browser


def until(done, seconds: float, told=lambda: "") -> None:
    """Wait until ``done`` returns something true."""
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, f"not within {seconds} s: {told()[-2000:]}"
        time.sleep(0.1)


def free_ports() -> int:
    """The first of three ports in a row that nobody uses."""
    for port in range(18000, 19000, 10):
        with socket.socket() as a, socket.socket() as b, socket.socket() as c:
            try:
                for offset, each in enumerate((a, b, c)):
                    each.bind(("127.0.0.1", port + offset))
            except OSError:
                continue
            return port
    raise RuntimeError("no three ports in a row are free")


@pytest.fixture(scope="session")
def students():
    """Two accounts with passwords; their names are no one else's."""
    mark = secrets.token_hex(3)
    passwords = {f"hub-test-{mark}-{who}": secrets.token_hex(8) for who in ("anna", "ben")}
    try:
        accounts.add(passwords)
        yield passwords
    finally:
        accounts.remove(list(passwords))


@pytest.fixture(scope="session")
def hub(students):
    """A running hub with a folder of its own and the installed environment."""
    folder = Path(tempfile.mkdtemp(prefix="hub-test-"))
    folder.chmod(0o755)
    for name in ("venv", "node_modules"):
        (folder / name).symlink_to(INSTALLED / name)
    hub = Hub(folder, free_ports(), students)
    hub.start()
    try:
        yield hub
    finally:
        hub.stop()
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def names(students):
    """The names of Anna and Ben."""
    return list(students)


@pytest.fixture
def anna(hub, names):
    """Anna's browser, logged in."""
    return hub.enter(names[0])


@pytest.fixture
def ben(hub, names):
    """Ben's browser, logged in."""
    return hub.enter(names[1])
