"""What guessers of passwords meet, and what they do not take from the others."""

import contextlib
import http.client
import re
import shutil
import socket
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count

import pytest
import requests

from classroom import accounts
from classroom.simulated import Browser, Refused, until
from tools import notebooks

MANY = 40
SOON = 15  # seconds, on a machine that does other things, too; it was a minute
number = count(1)


def tried(browser, password="wrong"):
    """Log in; returns what the page says and the seconds that it took."""
    start = time.monotonic()
    try:
        browser.login(password)
        return "in", time.monotonic() - start
    except Refused as error:
        return str(error), time.monotonic() - start


def fresh_address():
    """An address of the networks that are kept for documentation."""
    return f"198.18.{next(number) % 250}.{next(number) % 250}"


@contextlib.contextmanager
def guessing(browsers):
    """Let all of them guess at the same time; gives the list of what they were told, in the end."""
    told = []
    with ThreadPoolExecutor(len(browsers)) as pool:
        running = [pool.submit(tried, browser) for browser in browsers]
        yield told
    told += [each.result()[0] for each in running]


def all_log_in(url, passwords, **headers):
    """Let all of them log in at the same time; returns what they were told, and the longest."""
    with ThreadPoolExecutor(len(passwords)) as pool:
        browsers = [Browser(url, name, **headers) for name in passwords]
        done = list(pool.map(tried, browsers, passwords.values()))
    return [said for said, _ in done], max(seconds for _, seconds in done)


@pytest.fixture(scope="module")
def crowd(hub):
    """Forty more students, who have never logged in: their passwords by name."""
    first = next(iter(hub.passwords))
    passwords = {f"{first}-{i}": "right-enough" for i in range(MANY)}
    with contextlib.redirect_stdout(None):
        accounts.add(passwords)
    yield passwords
    hub.stop()
    with contextlib.redirect_stdout(None):
        accounts.remove(list(passwords))
    hub.start()


@pytest.fixture(scope="module")
def behind(hub, crowd):
    """The hub, told that a web server stands before it; for the last tests of this file."""
    hub.stop()
    hub.start(PROXY="1")
    yield hub
    hub.stop()
    hub.start()


def test_forty_guesses_at_once_hold_up_nobody_and_are_told_to_wait(hub, names):
    anna, ben = names
    with guessing([Browser(hub.url, ben) for _ in range(MANY)]) as told:
        time.sleep(0.5)
        said, seconds = tried(Browser(hub.url, anna), hub.passwords[anna])
    assert said == "in" and seconds < SOON
    checked = [each for each in told if ": 403" in each]
    refused = [each for each in told if ": 429" in each]
    assert len(checked) <= 3 and len(checked) + len(refused) == MANY
    assert all(" Wait " in each and "try" in each for each in refused)


def test_a_class_with_one_address_logs_in_within_the_same_second(hub, crowd):
    said, seconds = all_log_in(hub.url, crowd)
    assert set(said) == {"in"} and seconds < SOON


def test_forty_names_from_one_address_do_not_lock_out_the_class_there(hub, names, crowd):
    with guessing([Browser(hub.url, name) for name in crowd]) as told:
        time.sleep(0.5)
        said, seconds = tried(Browser(hub.url, names[0]), hub.passwords[names[0]])
    assert said == "in" and seconds < SOON
    assert sum(": 403" in each for each in told) == MANY  # each name has one try
    for _ in range(4):  # the first failures leave little to wait for, the later ones more
        with guessing([Browser(hub.url, name) for name in crowd]) as told:
            pass
    assert sum(": 429" in each for each in told) >= MANY * 3 // 4


@pytest.mark.parametrize("header", ["X-Forwarded-For", "X-Real-Ip"])
def test_a_made_up_address_does_not_help_the_guesser(header, hub, names):
    tried(Browser(hub.url, names[1]))
    again = [Browser(hub.url, names[1], **{header: fresh_address()}) for _ in range(10)]
    with guessing(again) as told:
        pass
    assert sum(": 403" in each for each in told) <= 2, told


ASK = """
import requests, sys
url, name, address = sys.argv[1:]
with requests.Session() as s:
    s.headers["X-Forwarded-For"] = address
    s.get(f"{url}/hub/login")
    form = {"username": name, "password": "wrong", "_xsrf": s.cookies["_xsrf"]}
    print(s.post(f"{url}/hub/login", data=form).status_code)
"""


def test_a_student_who_asks_the_hub_past_its_proxy_is_this_machine(hub, anna, names):
    """There the header would hold nothing but what the student writes into it."""
    kernel = anna.kernel("work/03_softmax_masking.ipynb")
    inner = f"http://127.0.0.1:{hub.port + 2}"
    kernel.run(f"ASK = {ASK!r}")
    kernel.run("import sys, subprocess")
    said = [
        kernel.text(
            f"print(subprocess.run([sys.executable, '-c', ASK, '{inner}', '{names[1]}', "
            f"'{fresh_address()}'], capture_output=True, text=True).stdout)"
        ).strip()
        for _ in range(5)
    ]
    kernel.close()
    assert set(said) <= {"403", "429"} and said.count("403") <= 2


def test_the_sentence_stands_on_the_login_page_with_the_form(hub, names):
    with pytest.raises(Refused) as told:
        for _ in range(5):
            Browser(hub.url, names[1]).login("wrong")
    while ": 403" in str(told.value):
        with pytest.raises(Refused) as told:
            Browser(hub.url, names[1]).login("wrong")
    assert "The last password for this name was wrong. Wait" in str(told.value)
    assert "tell your teacher" in str(told.value)
    assert 1 <= told.value.wait <= 300


def test_a_name_that_does_not_exist_is_answered_like_one_that_does(hub, names):
    time.sleep(5)
    times = {}
    for name in (names[0], f"{names[0]}-nobody", "root"):
        said, times[name] = tried(Browser(hub.url, name))
        assert "403 Invalid username or password" in said
    assert all(0.9 < each < 6 for each in times.values())
    assert max(times.values()) - min(times.values()) < 2


def test_whoever_is_guessed_from_forty_addresses_gets_in(behind, names):
    anna = names[0]
    known = Browser(behind.url, anna, **{"X-Forwarded-For": fresh_address()})
    known.login(behind.passwords[anna])
    addresses = [fresh_address() for _ in range(MANY)]
    guessers = [Browser(behind.url, anna, **{"X-Forwarded-For": each}) for each in addresses]
    with guessing(guessers):
        time.sleep(1)
        said, seconds = tried(known, behind.passwords[anna])
        assert said == "in" and seconds < SOON
        stranger = Browser(behind.url, anna, **{"X-Forwarded-For": fresh_address()})
        said, seconds = tried(stranger, behind.passwords[anna])
    assert said == "in" and seconds < 45
    # The guessers wait, also the second time, and she still does not.
    with guessing(guessers):
        time.sleep(1)
        said, seconds = tried(known, behind.passwords[anna])
        assert said == "in" and seconds < SOON


class LikeCaddy(BaseHTTPRequestHandler):
    """What Caddy does by default: X-Forwarded-For is whom it was asked by, whatever stood there."""

    protocol_version = "HTTP/1.1"
    to = 0

    def _pass_on(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {k: v for k, v in self.headers.items() if k.lower() != "x-forwarded-for"}
        headers["X-Forwarded-For"] = self.client_address[0]
        asked = http.client.HTTPConnection("127.0.0.1", self.to)
        asked.request(self.command, self.path, body, headers)
        answer = asked.getresponse()
        content = answer.read()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "content-length", "connection"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = _pass_on

    def log_message(self, *told):
        pass


@contextlib.contextmanager
def server_before(hub, which, tmp_path):
    """A web server before a hub: Caddy with the Caddyfile of README.md, or one like it."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    if which == "like Caddy":
        LikeCaddy.to = hub.port
        server = ThreadingHTTPServer(("127.0.0.1", port), LikeCaddy)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield url
        server.shutdown()
        server.server_close()
        return
    program = shutil.which("caddy")
    if not program:
        pytest.skip("Caddy is not installed")
    text = caddyfile().replace("hub.example.org", url).replace(":8000", f":{hub.port}")
    (tmp_path / "Caddyfile").write_text("{\n    admin off\n}\n" + text)
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    command = [program, "run", "--config", str(tmp_path / "Caddyfile")]
    running = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    try:
        until(lambda: answers(url), 20)
        yield url
    finally:
        running.terminate()
        running.wait(20)


def caddyfile():
    """The Caddyfile that the page for the teacher shows."""
    text = (notebooks.ROOT / "classroom/README.md").read_text(encoding="utf-8")
    return text[text.index("hub.example.org {") :].split("```")[0]


def answers(url):
    with contextlib.suppress(requests.ConnectionError):
        return requests.get(f"{url}/hub/login").ok


@pytest.mark.parametrize("which", ["Caddy", "like Caddy"])
def test_behind_a_web_server_a_class_with_one_address_is_not_locked_out(
    which, behind, names, crowd, tmp_path
):
    with server_before(behind, which, tmp_path) as url:
        for headers in ({}, *({h: fresh_address()} for h in ("X-Forwarded-For", "X-Real-Ip"))):
            with guessing([Browser(url, names[1], **headers) for _ in range(MANY)]) as told:
                pass
            # Made-up headers: the guesser waits as before.
            assert sum(": 403" in each for each in told) <= 2, told
        said, seconds = all_log_in(url, crowd)
        assert set(said) == {"in"} and seconds < SOON
        # A wrong password from elsewhere: the address that the server says is the one that counts.
        elsewhere = Browser(behind.url, names[1], **{"X-Forwarded-For": fresh_address()})
        assert ": 403" in tried(elsewhere)[0]
    told = re.findall(r"Wrong password for '(\S+)' from (.+)", behind.said())
    assert (names[1], "this machine") in told  # who asks the server here, is here
