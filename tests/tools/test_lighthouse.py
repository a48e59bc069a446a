"""What Lighthouse's points become, and the server that it loads from; it itself takes minutes."""

import gzip
import json
import subprocess
import urllib.error
import urllib.request

import pytest

pytest.importorskip("playwright", reason="make lint installs it")

from tools import browser, notebooks
from tools.lighthouse import __main__ as lighthouse
from tools.lighthouse.server import serve

TEXT = "<p>many letters many letters many letters"


@pytest.fixture
def address(tmp_path):
    (tmp_path / "index.html").write_text(TEXT)
    (tmp_path / "a.png").write_bytes(b"png")
    with serve(tmp_path) as address:
        yield address


def ask(url, **headers):
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
        return answer.read(), answer.headers


def test_the_server_packs_text_for_those_who_take_it(address):
    for path in ("/", "/index.html", "/index.html?q=1"):
        body, headers = ask(address + path, **{"Accept-Encoding": "gzip, deflate"})
        assert (headers["Content-Encoding"], headers["Content-Type"]) == ("gzip", "text/html")
        assert gzip.decompress(body) == TEXT.encode()
        assert len(body) == int(headers["Content-Length"])
    body, headers = ask(f"{address}/index.html")
    assert body == TEXT.encode() and "Content-Encoding" not in headers
    body, headers = ask(f"{address}/a.png", **{"Accept-Encoding": "gzip"})
    assert body == b"png" and "Content-Encoding" not in headers


def test_the_server_has_nothing_else(address):
    for path in ("/b.html", "/../secret.html"):
        with pytest.raises(urllib.error.HTTPError, match="404"):
            ask(address + path, **{"Accept-Encoding": "gzip"})


def points(performance, accessibility=100, practices=100):
    return {"performance": performance, "accessibility": accessibility, "best-practices": practices}


@pytest.mark.parametrize(
    ("page", "runs", "enough"),
    [
        ("index", [points(95)] * 3, True),
        ("index", [points(94)] * 3, False),
        ("04_one_head", [points(85)] * 3, True),
        ("04_one_head", [points(84)] * 3, False),
        ("04_one_head", [points(60), points(99), points(85)], True),  # the median
        ("04_one_head", [points(60), points(99), points(84)], False),
        ("index", [points(100, 99)] * 3, False),
        ("index", [points(100, 100, 96)] * 3, False),
    ],
)
def test_a_page_needs_points_of_each_kind(page, runs, enough):
    line, good = lighthouse.row(page, runs)
    assert good == enough and line.startswith(page) and ("*" in line) == (not enough)


@pytest.fixture
def measured(monkeypatch, tmp_path):
    """A site that is there, and points by page without Lighthouse."""
    monkeypatch.setattr(notebooks, "ROOT", tmp_path)
    monkeypatch.setattr(lighthouse, "REPORTS", tmp_path / "build" / "lighthouse")
    monkeypatch.setattr(lighthouse, "SITE", tmp_path / "site")
    monkeypatch.setattr(lighthouse, "INSTALLED", tmp_path / "lighthouse")
    monkeypatch.setattr(browser, "executable", lambda: "chromium")
    for file in ("site/index.html", "lighthouse/ready"):
        (tmp_path / file).parent.mkdir()
        (tmp_path / file).touch()
    loaded = []

    def measure(address, report, chromium):
        loaded.append((address.rpartition("/")[2], report.name))
        return points(90)

    monkeypatch.setattr(lighthouse, "measure", measure)
    return loaded


def run(monkeypatch, *arguments):
    monkeypatch.setattr("sys.argv", ["lighthouse", *arguments])
    lighthouse.main()


def test_a_page_is_loaded_three_times(measured, monkeypatch, capsys):
    run(monkeypatch, "03")
    name = "03_softmax_masking"
    assert measured == [(f"{name}.html", f"{name}-{n}") for n in (1, 2, 3)]
    *_, line, _where = capsys.readouterr().out.splitlines()
    assert line.split() == [name, "90", "100", "100", "(90,", "90,", "90)"]


def test_all_pages_are_loaded_and_one_with_too_few_points_fails(measured, monkeypatch, refused):
    said = refused(run, monkeypatch, "")
    assert "performance 95 (index) or 85 (notebooks)" in said
    pages = ["index", *(path.stem for path in notebooks.names())]
    assert [page for page, _ in measured[::3]] == [f"{page}.html" for page in pages]


@pytest.mark.parametrize(
    ("missing", "target"), [("site/index.html", "site"), ("lighthouse/ready", "lighthouse")]
)
def test_what_is_missing_is_told(measured, monkeypatch, refused, tmp_path, missing, target):
    (tmp_path / missing).unlink()
    assert refused(run, monkeypatch) == f"{missing} is missing: run make {target}."
    assert measured == []


def test_a_page_without_points_is_told(monkeypatch, refused, tmp_path):
    found = {"categories": {kind: {"score": 0.96} for kind in lighthouse.KINDS}}
    report = tmp_path / "index-1.report.json"
    report.write_text(json.dumps(found))  # of another day

    def pretend(command, **_):
        assert f"--output-path={tmp_path / 'index-1'}" in command
        if found:
            report.write_text(json.dumps(found))
        return subprocess.CompletedProcess(command, 1, "", "a\nUnable to connect to Chrome\n")

    monkeypatch.setattr(subprocess, "run", pretend)
    asked = ("http://localhost:1/index.html", tmp_path / "index-1", "chromium")
    assert lighthouse.measure(*asked) == dict.fromkeys(lighthouse.KINDS, 96)
    found["categories"]["performance"]["score"] = None  # a run that broke off
    assert "gave no points" in refused(lighthouse.measure, *asked)
    found.clear()
    report.write_text(json.dumps({"categories": {kind: {"score": 1} for kind in lighthouse.KINDS}}))
    assert "(Unable to connect to Chrome)" in refused(lighthouse.measure, *asked)
