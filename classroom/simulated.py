"""A hub of its own with students at it, for tests/classroom and benchmarks/classroom.py.

A student's `Browser` has no screen: it logs in, waits for the student's server, runs cells over the
websocket and saves notebooks, by the same requests as JupyterLab.
"""

import json
import os
import random
import re
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from urllib.parse import quote

import requests
import websocket

from classroom import accounts, hub_folder, hub_group
from tools import notebooks

PROGRAMS = hub_folder()  # what make hub has installed, which every hub of a test runs


class Refused(Exception):
    """A request that was not fulfilled; the text says which, and with which status.

    ``wait`` is how many seconds the hub asks to wait before the next one, or 0.
    """

    def __init__(self, text: str, wait: int = 0):
        super().__init__(text)
        self.wait = wait


class Browser:
    """One browser: its cookies, the student ``name`` it belongs to, and the hub's ``url``.

    It sends ``headers`` with each request, as a guesser may.
    """

    def __init__(self, url: str, name: str, **headers: str):
        self.url, self.name, self._session = url, name, requests.Session()
        self._session.headers.update(headers)

    def login(self, password: str, patient: bool = False) -> None:
        """Fill in the login page; who is ``patient`` waits where the hub asks for it."""
        try:
            self._fill_in(password)
        except Refused as error:
            if not (patient and error.wait):
                raise
            time.sleep(error.wait)
            self.login(password, patient)

    def _fill_in(self, password: str) -> None:
        self._session.get(f"{self.url}/hub/login")
        answer = self._session.post(
            f"{self.url}/hub/login",
            params={"_xsrf": self._xsrf("/hub/")},
            data={"username": self.name, "password": password},
            allow_redirects=False,
        )
        if answer.status_code != 302:
            told = re.search(r'class="login_error">(.*?)</p>', answer.text, re.DOTALL)
            raise Refused(
                f"login {self.name}: {answer.status_code} {told[1] if told else ''}",
                int(answer.headers.get("Retry-After", 0)),
            )

    def logout(self) -> None:
        """Leave the hub; the student's server goes on until it is idle for long."""
        self._session.get(f"{self.url}/hub/logout")
        self._session.cookies.clear()

    def start_server(self, seconds: float = 300) -> str:
        """Start the student's server if there is none, wait for it, and say where it leads."""
        self._session.get(f"{self.url}/hub/spawn/{self.name}")
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            answer = self._session.get(f"{self.url}/user/{self.name}/")
            if answer.ok and f"/user/{self.name}/" in answer.url and "/hub/" not in answer.url:
                return answer.url
            time.sleep(1)  # each look costs the hub a page
        raise Refused(
            f"the server of {self.name} did not start within {seconds:.0f} s: {answer.url}"
        )

    def stop_server(self) -> None:
        """Choose Hub Control Panel > Stop My Server, and wait."""
        path = f"/hub/api/users/{self.name}/server"
        while self.request("DELETE", path, base="/hub/").status_code != 204:
            time.sleep(0.25)

    def request(self, method: str, path: str, base: str = "", **more) -> requests.Response:
        """Send a request with the cookies that the browser has for the page ``base``."""
        headers = {"X-XSRFToken": self._xsrf(base or f"/user/{self.name}/")}
        return self._session.request(
            method, self.url + path, headers=headers, allow_redirects=False, timeout=60, **more
        )

    def ask(self, method: str, path: str, **more) -> dict:
        """What the student's own server answers, as JSON."""
        answer = self.request(method, f"/user/{self.name}/api/{path}", **more)
        if not answer.ok:
            raise Refused(f"{method} {path}: {answer.status_code} {answer.text[:300]}")
        return answer.json() if answer.content else {}

    def open(self, path: str) -> dict:
        """A notebook's content."""
        return self.ask("GET", f"contents/{quote(path)}")["content"]

    def save(self, path: str, notebook: dict) -> None:
        """Save a notebook, as Ctrl + S does."""
        body = {"type": "notebook", "content": notebook}
        self.ask("PUT", f"contents/{quote(path)}", json=body)

    def kernel(self, path: str) -> "Kernel":
        """The kernel of a notebook, started if it has none yet."""
        body = {"path": path, "type": "notebook", "name": path, "kernel": {"name": "python3"}}
        return Kernel(self, self.ask("POST", "sessions", json=body)["kernel"]["id"])

    def websocket(self, path: str) -> websocket.WebSocket:
        """Open a websocket to the student's server."""
        jar = requests.cookies.get_cookie_header(
            self._session.cookies,
            requests.Request("GET", f"{self.url}/user/{self.name}/").prepare(),
        )
        return websocket.create_connection(
            f"ws{self.url.removeprefix('http')}/user/{self.name}/{path}",
            cookie=jar,
            origin=self.url,
            timeout=120,
        )

    def _xsrf(self, path: str) -> str:
        """The token that goes with a page's cookie."""
        found = [c for c in self._session.cookies if c.name == "_xsrf" and c.path == path]
        return found[0].value if found else ""


class Kernel:
    """A running kernel of a student, and the websocket that leads to it."""

    def __init__(self, browser: Browser, id: str):
        self.id, self._session = id, uuid.uuid4().hex
        self._socket = browser.websocket(f"api/kernels/{id}/channels?session_id={self._session}")

    def run(self, code: str) -> list[dict]:
        """Run a cell; returns its outputs as a notebook keeps them."""
        id = uuid.uuid4().hex
        header = {"msg_id": id, "msg_type": "execute_request", "session": self._session}
        header |= {"username": "", "version": "5.3", "date": ""}
        content = {"code": code, "silent": False, "store_history": True, "user_expressions": {}}
        content |= {"allow_stdin": False, "stop_on_error": False}
        message = {"header": header, "parent_header": {}, "metadata": {}, "content": content}
        self._socket.send(json.dumps(message | {"channel": "shell", "buffers": []}))
        outputs, done = [], set()
        while done != {"idle", "reply"}:
            said = json.loads(self._socket.recv())
            kind, content = said["msg_type"], said["content"]
            if kind == "status" and content["execution_state"] in ("restarting", "dead"):
                raise Refused(f"the kernel is {content['execution_state']}")
            if said["parent_header"].get("msg_id") != id:
                continue
            if kind == "status" and content["execution_state"] == "idle":
                done.add("idle")
            elif kind == "execute_reply":
                done.add("reply")
            elif kind in ("stream", "display_data", "execute_result", "error"):
                content.pop("transient", None)
                outputs.append({"output_type": kind, **content})
        return outputs

    def text(self, code: str) -> str:
        """What a cell prints, or the name and text of its error."""
        outputs = self.run(code)
        return "".join(
            o["text"] if "text" in o else f"{o['ename']}: {o['evalue']}"
            for o in outputs
            if o["output_type"] in ("stream", "error")
        )

    def close(self) -> None:
        """Close the notebook's tab; the kernel goes on."""
        self._socket.close()


class Hub:
    """A hub, its ``folder`` and ``url``, and the ``passwords`` of its students."""

    def __init__(self, folder: Path, port: int, passwords: dict[str, str]):
        self.folder, self.port, self.passwords = folder, port, passwords
        self.url = f"http://127.0.0.1:{port}"
        self.log = folder / "log"

    def start(self, **settings: str) -> None:
        """Start it as make hub does, with its settings, and wait until it answers."""
        environment = {**os.environ, "HUB": str(self.folder), "PORT": str(self.port), **settings}
        already = self.said().count("is now running")
        with open(self.log, "a") as log:
            self.process = subprocess.Popen(
                [str(PROGRAMS / "venv/bin/python"), "-B", "-m", "classroom.hub"],
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
        self.process.wait(120)

    def enter(self, name: str) -> Browser:
        """A browser in which a student has logged in, with a server that runs."""
        browser = Browser(self.url, name)
        browser.login(self.passwords[name], patient=True)  # a test has tried a wrong one before
        browser.start_server(90)
        return browser


def until(done: Callable[[], object], seconds: float, told: Callable[[], str] = lambda: "") -> None:
    """Wait until ``done`` returns something true."""
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            raise TimeoutError(f"not within {seconds} s: {told()[-2000:]}")
        time.sleep(0.1)


_TAKEN: list[socket.socket] = []  # of ports that were given, each for as long as this process runs


def free_ports() -> int:
    """The first of three ports in a row that nobody uses, another one for each who asks.

    A hub takes seconds until it uses them. The last port of the ten, which nobody uses, tells other
    processes that they are taken.
    """
    for port in random.sample(range(18000, 19000, 10), 100):
        mark = socket.socket()
        with socket.socket() as a, socket.socket() as b, socket.socket() as c:
            try:
                for offset, each in zip((0, 1, 2, 9), (a, b, c, mark), strict=True):
                    each.bind(("127.0.0.1", port + offset))
            except OSError:
                mark.close()
                continue
        _TAKEN.append(mark)
        return port
    raise RuntimeError("no three ports in a row are free")


@contextmanager
def running(students: list[str]) -> Iterator[Hub]:
    """A hub on free ports, with a folder and accounts of its own, all removed at the end.

    Its programs are those that make hub has installed.
    """
    mark = secrets.token_hex(3)
    passwords = {f"hub-{mark}-{name}": secrets.token_hex(8) for name in students}
    folder = Path(tempfile.mkdtemp(prefix="hub-"))
    folder.chmod(0o755)
    for name in ("venv", "node_modules"):
        (folder / name).symlink_to(PROGRAMS / name)
    hub = Hub(folder, free_ports(), passwords)
    os.environ["HUB"] = str(folder)
    try:
        with redirect_stdout(None):
            accounts.add(passwords)
        hub.start()
        try:
            yield hub
        finally:
            hub.stop()
    finally:
        shutil.rmtree(folder)  # what the hub knows of them is gone, too
        with redirect_stdout(None):
            accounts.remove(list(passwords), files=True)
        accounts.run("groupdel", hub_group())
        os.environ["HUB"] = str(PROGRAMS)
