"""The page that shows a teacher the class at work: what it says, and to whom."""

import json
import re
import socket
import struct
import threading
import time
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
import requests

from classroom import watch
from lesson.exercises import EXERCISES, PREDICTIONS
from lesson.progress_file import log_of
from tools import report

NOW = datetime(2026, 3, 2, 10, 30, tzinfo=UTC)
PLACES = report.find_places()
ID = "03.1"
MISTAKE = EXERCISES[ID].mistakes[0].name


def line(id, status, minutes=1, **more):
    """A line of a progress file, so many minutes old."""
    then = (NOW - timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")
    kind = "predict" if id in PREDICTIONS else "check"
    said = {"version": 1, "time": then, "notebook": id[:2], "id": id, "kind": kind}
    return json.dumps({**said, "status": status, **more}).encode() + b"\n"


def student(name, *lines):
    return report.Student(name, name, log_of(b"".join(lines)).entries, [], Counter())


def rows_of(html, caption):
    """The rows of a table as texts of their cells."""
    table = html.split(f"<caption>{caption}</caption>")[1].split("</table>")[0]
    rows = re.findall(r"<tr>(.*?)</tr>", table.split("<tbody>")[1])
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows]
    return [[re.sub(r"<[^>]*>", "", cell) for cell in row] for row in cells]


def test_it_says_who_is_where_since_when_and_what_came_of_it():
    students = [
        student("anna", line("02.1", "passed", 30), line(ID, "failed", 7, mistake=MISTAKE)),
        student("ben", line("03.p1", "right", 0)),
        student("carl"),
        student("dora", line(ID, "passed", 3 * 24 * 60)),
        student("emil", line(ID, "failed", 2), line(ID, "failed", 1)),
    ]
    html = watch.page(students, PLACES, NOW)
    rows = rows_of(html, "Who is where")
    assert rows[0][0] == "anna" and rows[0][1].endswith(f"exercise {ID}")
    assert rows[0][2] == f"not right yet: {MISTAKE}" and rows[0][3] == "7 min ago"
    assert rows[1][1].endswith("prediction 03.p1") and rows[1][2:] == ["right", "now"]
    assert rows[2] == ["carl", "nothing kept yet", "", ""]
    assert rows[3][2:] == ["passed", "before this lesson"]
    assert rows[4][2] == "not right yet, 2 times"
    assert "<h1>3 of 5 students at work</h1>" in html
    assert '<meta http-equiv="refresh" content="10">' in html


def test_it_says_which_exercise_holds_up_whom_until_it_passes():
    failed = [line(ID, "failed")] * watch.STUCK
    students = [
        student("anna", *failed),
        student("ben", *failed, line(ID, "passed")),
        student("carl", *failed[1:]),
        student("dora", *failed, line(ID, "failed")),
        student("emil", *[line(ID, "failed", 24 * 60)] * 9, line("03.p1", "right")),
    ]
    [row] = rows_of(watch.page(students, PLACES, NOW), "Exercises that hold students up")
    assert row[0].startswith(ID) and row[1] == "2"
    assert row[3] == "anna (3 times), dora (4 times)"
    assert "Nobody has failed" in watch.page(students[1:3], PLACES, NOW)


def test_it_counts_wrong_first_answers_of_this_lesson():
    students = [
        student("anna", line("03.p1", "wrong", 5, answer="a"), line("03.p1", "right", answer="b")),
        student("ben", line("03.p1", "right", 5, answer="b"), line("03.p1", "wrong", answer="a")),
        # Who answers again has met it before this lesson.
        student("carl", line("03.p1", "wrong", 999, answer="a"), line("03.p1", "wrong")),
    ]
    [row] = rows_of(watch.page(students, PLACES, NOW), "Predictions, by wrong first answers")
    assert row[0].startswith("03.p1") and row[1] == "1 of 2"


def test_nothing_of_a_file_is_taken_for_html_and_a_wrong_time_does_no_harm():
    evil = "<script>alert(1)</script>"
    lines = [line("03.p1", "wrong", answer=evil, mistake="x"), line(ID, "failed", mistake=evil)]
    bad = json.loads(line(ID, "failed"))
    more = [json.dumps(bad | {"time": time}).encode() + b"\n" for time in (evil, "9999-99", "")]
    html = watch.page([student(evil, *more, *lines)], PLACES, NOW)
    assert "<script" not in html and "&lt;script" in html
    last = watch.page([student("anna", *lines, *more)], PLACES, NOW)
    assert "before this lesson" in last
    future = watch.page([student("anna", line(ID, "passed", -500))], PLACES, NOW)
    assert rows_of(future, "Who is where")[0][3] == "now"


def test_thirty_students_with_half_written_and_large_files_are_read(monkeypatch):
    names = [f"s{i:02d}" for i in range(30)]
    whole = line(ID, "passed") * 20
    large = line(ID, "failed") * (watch.MOST // len(line(ID, "failed")))
    contents = dict.fromkeys(names, whole + line("03.p1", "right")[:-20])
    contents |= {"s01": large + b"x", "s02": b"\0" * watch.MOST, "s03": b"[" * watch.MOST}
    contents |= {"s04": b"\n" * watch.MOST, "s05": b"", "s06": b'{"version": 1}\n' * 1000}
    monkeypatch.setattr(watch, "members", lambda: names)
    monkeypatch.setattr(watch, "_content", lambda name: contents[name])
    everybody = watch.Class()
    start = time.process_time()
    html = watch.page(everybody.students(), PLACES, NOW)
    assert time.process_time() - start < watch.EVERY / 2
    rows = rows_of(html, "Who is where")
    assert [row[0] for row in rows] == names
    assert [row[0] for row in rows if row[1] == "nothing kept yet"] == names[2:7]
    assert all(row[2] == "passed" for row in rows[7:])
    # A file that has not changed is not read anew; one that has, is.
    monkeypatch.setattr(watch, "log_of", lambda content: log_of(line(ID, "failed")))
    contents["s29"] += b"\n"
    rows = rows_of(watch.page(everybody.students(), PLACES, NOW), "Who is where")
    assert [row[2] for row in rows[7:]] == ["passed"] * 22 + ["not right yet"]


def test_without_names_the_numbers_stay_and_do_not_follow_the_names(monkeypatch):
    names = [f"student-{i:02d}" for i in range(30)]
    monkeypatch.setattr(watch, "_content", lambda name: line(ID, "passed"))
    orders = set()
    for _ in range(3):
        everybody = watch.Class(names=False)
        monkeypatch.setattr(watch, "members", lambda: names[:-1])
        shown = [student.name for student in everybody.students()]
        assert shown == [str(i) for i in range(1, 30)]
        before = dict(everybody._numbers)
        monkeypatch.setattr(watch, "members", lambda: names)
        students = everybody.students()
        assert everybody._numbers == before | {names[-1]: "30"}
        html = watch.page(students, PLACES, NOW)
        assert not any(name in html for name in names)
        orders.add(tuple(before))
    assert len(orders) > 1


@pytest.fixture
def server():
    server = watch.Shown(0)
    server.html = "the class …".encode()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_only_who_knows_the_address_sees_the_page_and_only_on_this_machine(server):
    answer = requests.get(server.address)
    assert answer.text == "the class …" and answer.headers["Cache-Control"] == "no-store"
    assert len(server.path) > 30 and watch.Shown(0).path != server.path
    for path in ("", "/", server.path[:-1], f"{server.path}x", "/favicon.ico", "/%C3%A4"):
        answer = requests.get(f"http://127.0.0.1:{server.server_port}{path}")
        assert answer.status_code == 404 and "class …" not in answer.text
    assert server.server_address[0] == "127.0.0.1"


def test_who_hangs_up_is_no_traceback_in_the_terminal(server, capsys):
    with socket.create_connection(server.server_address) as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        line.sendall(b"GET / HTTP/1.1\r\n")
    assert requests.get(server.address).ok
    time.sleep(0.2)
    assert capsys.readouterr().err == ""


def test_the_page_is_for_root_and_needs_students_and_a_port(monkeypatch, capsys, server):
    monkeypatch.setattr(watch.os, "geteuid", lambda: 1000)
    with pytest.raises(SystemExit):
        watch.main()
    monkeypatch.setattr(watch.os, "geteuid", lambda: 0)
    monkeypatch.setattr(watch, "members", list)
    with pytest.raises(SystemExit):
        watch.main()
    monkeypatch.setattr(watch, "members", lambda: ["anna"])
    monkeypatch.setenv("PORT", str(server.server_port - 3))
    with pytest.raises(SystemExit):
        watch.main()
    monkeypatch.setenv("PORT", "65533")  # the last one for a hub
    with pytest.raises(SystemExit):
        watch.main()
    said = capsys.readouterr().err
    assert "with sudo" in said and "no students" in said
    assert f"Port {server.server_port} cannot be used" in said and "Port 65536 cannot" in said
