"""Show the teacher where the class is during a lesson: ``python -m classroom.watch``, as root.

A page on this machine tells from the students' progress files who is where, which exercises hold
them up and which predictions have misled them. It looks again every ten seconds. Its address holds
a secret that this command makes anew, because students work on the same machine.
"""

import os
import secrets
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from classroom.accounts import members
from classroom.collect import progress_of
from classroom.hub import chosen_port
from lesson.exercises import EXERCISES
from lesson.progress_file import Entry, Log, log_of, when
from lesson.progress_view import is_known
from lesson.question import code_marked
from tools import notebooks, report
from tools.report import Places, Student

EVERY = 10  # seconds
LESSON = timedelta(minutes=90)
MOST = 1_000_000  # bytes of a file; a year of work is less
SECONDS = 2  # for one file; a pipe in its place would never end
AT_ONCE = 10  # files
STUCK = 3  # failures from which on somebody is stuck
OUTCOMES = {
    "passed": "passed",
    "failed": "not right yet",
    "not attempted": "opened",
    "right": "right",
    "wrong": "wrong",
}


class Class:
    """The students of the hub and what their files say, looked at again and again."""

    def __init__(self, names: bool = True):
        self._names, self._numbers = names, {}
        self._read: dict[str, tuple[bytes, Log]] = {}

    def students(self) -> list[Student]:
        """All of them by name, or by number; who has not begun has no entries."""
        found = members()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            contents = list(pool.map(_content, found))
        students = []
        for name, content in zip(found, contents, strict=True):
            before, log = self._read.get(name, (None, None))
            if content != before:
                log = log_of(content)
                self._read[name] = content, log
            shown = self._shown(name, found)
            entries = [entry for entry in log.entries if is_known(entry)]
            students.append(Student(shown, shown, entries, [], Counter()))
        return sorted(students, key=lambda s: (len(s.name) * (not self._names), s.name))

    def _shown(self, name: str, all_names: list[str]) -> str:
        """The name, or a number that does not follow the names and stays until this ends."""
        if self._names:
            return name
        new = [each for each in all_names if each not in self._numbers]
        secrets.SystemRandom().shuffle(new)
        for each in new:
            self._numbers[each] = str(len(self._numbers) + 1)
        return self._numbers[name]


def _content(name: str) -> bytes:
    """A student's file as it is now, nothing where there is none."""
    return progress_of(name, MOST, SECONDS) or b""


# ---------------------------------------------------------------- what the page says


def is_recent(entry: Entry, now: datetime) -> bool:
    """Whether it belongs to this lesson."""
    then = when(entry)
    return then is not None and now - LESSON <= then


def ago(entry: Entry, now: datetime) -> str:
    """How long ago it was, in words."""
    if not is_recent(entry, now):
        return "before this lesson"
    minutes = max(0, int((now - when(entry)).total_seconds() // 60))
    return "now" if minutes == 0 else f"{minutes} min ago"


def in_this_lesson(students: list[Student], now: datetime) -> list[Student]:
    """The students with what they have done in this lesson, which some have not been in."""
    kept = [
        replace(student, entries=[e for e in student.entries if is_recent(e, now)])
        for student in students
    ]
    return [student for student in kept if student.entries]


def first_answers(students: list[Student], now: datetime) -> list[Student]:
    """The students with the predictions that they have met in this lesson."""
    return [
        replace(s, entries=[e for e in s.first_answers.values() if is_recent(e, now)])
        for s in students
    ]


def where(students: list[Student], places: Places, now: datetime) -> str:
    """A row for each student: the last exercise or prediction, what came of it, and when."""
    rows = []
    for student in students:
        row = [escape(student.name), "nothing kept yet", "", ""]
        if student.entries:
            last = student.entries[-1]
            row[1:] = places.of(last.id), _outcome(student.entries), ago(last, now)
        rows.append(row)
    heads = ["Student", "Last exercise or prediction", "What came of it", "When"]
    return report.table("Who is where", heads, rows)


def _outcome(entries: list[Entry]) -> str:
    """What came of the last one, with the number of failures where it has some."""
    last = entries[-1]
    told = escape(OUTCOMES[last.status])
    times = failures(entries, last.id)
    if last.status == "failed" and times > 1:
        told += f", {times} times"
    return told + (f": {escape(last.mistake)}" if last.mistake else "")


def failures(entries: Iterable[Entry], id: str) -> int:
    """How often an exercise has failed since it passed, or at all."""
    number = 0
    for entry in entries:
        if entry.id == id:
            number = 0 if entry.status == "passed" else number + (entry.status == "failed")
    return number


def stuck(students: list[Student], places: Places) -> str:
    """A row for each exercise that has failed several times for somebody, and has not passed."""
    rows = []
    for id, exercise in EXERCISES.items():
        at_it = {student.name: failures(student.entries, id) for student in students}
        at_it = {name: times for name, times in at_it.items() if times >= STUCK}
        if not at_it:
            continue
        who = [f"{escape(name)} ({times} times)" for name, times in at_it.items()]
        title = f"{id} {code_marked(exercise.title)}"
        row = [title, str(len(at_it)), places.of(id), ", ".join(who)]
        rows.append(((-len(at_it), -sum(at_it.values()), id), row))
    if not rows:
        return f"<p>Nobody has failed at an exercise {STUCK} times or more without passing it.</p>"
    heads = ["Exercise", "Students who are stuck", "Where", "Who, and failures so far"]
    return report.table("Exercises that hold students up", heads, report.ordered(rows))


def page(students: list[Student], places: Places, now: datetime) -> str:
    """The whole page."""
    lesson = in_this_lesson(students, now)
    minutes = int(LESSON.total_seconds() // 60)
    parts = [
        report.HEAD.replace("Report on a class", "A class at work"),
        f'<meta http-equiv="refresh" content="{EVERY}">',
        f"<style>\n{report.STYLE.read_text(encoding='utf-8')}</style>\n</head>\n<body>\n<main>",
        f"<h1>{len(lesson)} of {len(students)} students at work</h1>",
        f"<p>At {now.astimezone():%H:%M:%S}. A student counts as at work who has answered or "
        f"checked something in a notebook in the last {minutes} minutes; answers to <code>review()"
        "</code> do not count. This page renews itself.</p>",
        '<h2 id="stuck">Who is stuck</h2>',
        stuck(lesson, places),
        '<h2 id="predictions">Predictions that went wrong</h2>',
        f"<p>First answers of the last {minutes} minutes.</p>",
        report.misled(first_answers(students, now), places),
        '<h2 id="where">Who is where</h2>',
        where(students, places, now),
        '<h2 id="mistakes">Mistakes</h2>',
        report.mistakes(lesson, places),
        "</main>\n</body>\n</html>\n",
    ]
    return "\n".join(parts)


# ---------------------------------------------------------------- who may see it


class Shown(ThreadingHTTPServer):
    """A server for this machine with one page, for whoever knows its secret."""

    daemon_threads = True

    def __init__(self, port: int):
        super().__init__(("127.0.0.1", port), Answer)
        self.path = f"/{secrets.token_urlsafe(24)}"
        self.html = b""

    def handle_error(self, *request) -> None:
        """Say nothing of one who has hung up: students would fill the terminal."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(*request)

    @property
    def address(self) -> str:
        """Where the page is."""
        return f"http://127.0.0.1:{self.server_port}{self.path}"


class Answer(BaseHTTPRequestHandler):
    """One request for the page."""

    timeout = 5  # seconds; a student may ask and say nothing more
    server: Shown

    def do_GET(self) -> None:
        """Give the page to whoever knows its address."""
        if not secrets.compare_digest(self.path.encode(), self.server.path.encode()):
            return self.send_error(404)
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(self.server.html)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Referrer-Policy", "no-referrer")
        self.end_headers()
        self.wfile.write(self.server.html)

    def log_message(self, *told) -> None:
        """Say nothing: the terminal shows the address."""


def main() -> None:
    """Serve the page until Ctrl-C."""
    if os.geteuid():
        notebooks.stop("Only root may read the students' homes: run the same command with sudo.")
    if not members():
        notebooks.stop("The hub has no students: add them with make accounts FROM=class.txt.")
    port = chosen_port() + 3  # the hub has the three before
    try:
        server = Shown(port)
    except (OSError, OverflowError) as error:
        notebooks.stop(
            f"Port {port} cannot be used ({error}), and this page is shown there: end "
            "the other program, or name another PORT, as in PORT=9000 for 9003."
        )
    everybody, places = Class(names=os.environ.get("NAMES") != "0"), report.find_places()
    with suppress(KeyboardInterrupt):
        while True:
            html = page(everybody.students(), places, datetime.now(UTC))
            first, server.html = not server.html, html.encode()
            if first:
                threading.Thread(target=server.serve_forever, daemon=True).start()
                print(f"The class at work: {server.address}", flush=True)
                print("Keep this address for yourself. The page ends with Ctrl-C.", flush=True)
            time.sleep(EVERY)


if __name__ == "__main__":
    main()
