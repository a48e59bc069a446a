"""What make watch shows of real students, and what they cannot make it show."""

import functools
import os
import pwd
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import requests

from classroom import watch
from tools import notebooks


def answered(browser, answer="b"):
    """Let a student answer a question; returns their progress file."""
    kernel = browser.kernel("work/03_softmax_masking.ipynb")
    kernel.run(f"from lesson import predict\npredict('03.p1', '{answer}')")
    kernel.close()
    return Path(f"/home/{browser.name}/work/progress.jsonl")


def as_student(name, *command):
    account = pwd.getpwnam(name)
    subprocess.run(command, check=True, user=account.pw_uid, group=account.pw_gid, cwd="/")


def last_of(name):
    """The last exercise or prediction of a student, as the page knows it, "" for none."""
    students = {student.name: student for student in watch.Class().students()}
    return students[name].entries[-1].id if students[name].entries else ""


def test_the_page_shows_the_class_to_the_teacher_alone(hub, anna, ben):
    answered(anna)
    environment = {**os.environ, "PORT": str(hub.port), "PYTHONUNBUFFERED": "1"}
    running = subprocess.Popen(
        [sys.executable, "-B", "-m", "classroom.watch"],
        cwd=notebooks.ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        # A shell in the background ignores Ctrl-C for all that it starts: not for this.
        preexec_fn=functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    try:
        address = re.search(r"http://127\.0\.0\.1:\d+/\S{30,}", running.stdout.readline())[0]
        page = requests.get(address).text
        assert anna.name in page and ben.name in page and "prediction 03.p1" in page
        command = Path(f"/proc/{running.pid}/cmdline").read_bytes()
        assert address.rsplit("/", 1)[1].encode() not in command
        kernel = anna.kernel("work/03_softmax_masking.ipynb")
        said = kernel.text(
            f"import requests\nprint(requests.get('{address.rsplit('/', 1)[0]}').status_code)"
        )
        assert said == "404\n"
        kernel.close()
    finally:
        running.send_signal(signal.SIGINT)
        assert running.wait(30) == 0


@pytest.mark.parametrize("what", ["another's", "root's", "pipe", "endless", "large", "half a line"])
def test_what_lies_in_place_of_a_file_neither_shows_nor_stops_anything(what, anna, ben):
    answered(anna)
    mine, aside = answered(ben), f"/home/{ben.name}/aside"
    os.rename(mine, aside)
    try:
        if what == "another's":
            as_student(ben.name, "ln", "-s", f"/home/{anna.name}/work/progress.jsonl", str(mine))
        elif what == "root's":
            as_student(ben.name, "ln", "-s", "/etc/shadow", str(mine))
        elif what == "pipe":
            as_student(ben.name, "mkfifo", str(mine))
        elif what == "endless":
            as_student(ben.name, "ln", "-s", "/dev/zero", str(mine))
        elif what == "large":
            as_student(ben.name, "truncate", "--size=50G", str(mine))
        else:
            mine.write_bytes(Path(aside).read_bytes()[:-30])
        start = time.monotonic()
        assert last_of(anna.name) == "03.p1"
        assert time.monotonic() - start < watch.EVERY
        before = Path(aside).read_text().count("\n") > 1
        assert last_of(ben.name) == ("03.p1" if what == "half a line" and before else "")
    finally:
        mine.unlink(missing_ok=True)
        os.rename(aside, mine)
