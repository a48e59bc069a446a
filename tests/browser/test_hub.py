"""A hub as two students meet it side by side, each in a browser of their own."""

import json
import os
from pathlib import Path

import pytest

from classroom import simulated

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not (simulated.PROGRAMS / "installed").exists(),
    reason="that needs root and a hub that make hub or make test-hub has installed",
)
FIRST = "00_start_here.ipynb"


@pytest.fixture(scope="module")
def hub():
    with simulated.running(["anna", "ben"]) as running:
        yield running


def log_in(page, hub, name, password):
    """Fill in the login page, by hand."""
    page.goto(hub.url)
    page.fill("#username_input", name)
    page.fill("#password_input", password)
    page.click("#login_submit")


def go_on_to_a_question(page):
    """Press Shift + Enter until a question stands there; returns its choices."""
    choices = page.locator(".lesson-choice")
    for _ in range(60):
        if choices.count():
            break
        page.keyboard.press("Shift+Enter")
        page.wait_for_timeout(300)
    choices.first.wait_for()
    return choices


def save(page, path):
    """Press Ctrl + S and wait; returns the notebook that the student's home then holds."""
    unsaved = page.locator(".lm-TabBar-tab.jp-mod-dirty")
    assert unsaved.count() == 1
    page.keyboard.press("Control+s")
    unsaved.wait_for(state="detached")  # the file is written whole by then
    return json.loads(path.read_text())


def test_two_students_work_side_by_side(hub, chromium):
    pages, asked = {}, []
    for name, password in hub.passwords.items():
        page = chromium.new_context(viewport={"width": 1300, "height": 1000}).new_page()
        page.on("request", lambda request: asked.append(request.url))
        log_in(page, hub, name, "wrong")
        page.wait_for_selector("text=Invalid username or password")
        log_in(page, hub, name, password)
        pages[name] = page
    for name, page in pages.items():
        page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=90_000)
        page.wait_for_selector("text=/\\| Idle/", timeout=60_000)
        assert page.url == f"{hub.url}/user/{name}/lab/tree/work/{FIRST}"
        page.click(".jp-Notebook .jp-Cell >> nth=0")
    questions = [go_on_to_a_question(page) for page in pages.values()]
    questions[0].first.click()
    questions[0].first.locator("i.fa-check, i.fa-times").wait_for()
    homes = {name: Path(f"/home/{name}/work") for name in pages}
    for name, page in pages.items():
        cells = save(page, homes[name] / FIRST)["cells"]
        kinds = [output["output_type"] for cell in cells for output in cell.get("outputs", [])]
        assert kinds and "error" not in kinds
    anna, ben = homes.values()
    assert (anna / "progress.jsonl").read_text().count('"kind": "predict"') == 1
    assert '"kind": "predict"' not in (ben / "progress.jsonl").read_text()
    at_home = (f"{hub.url}/", f"{hub.url.replace('http', 'ws')}/", "data:", "blob:")
    assert [url for url in asked if not url.startswith(at_home)] == []
    for page in pages.values():
        page.context.close()
