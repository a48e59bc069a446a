"""The notebooks in real JupyterLab: make browser (not part of make test)."""

import re

import nbformat
import pytest

from tools import browser, notebooks

# JupyterLab gives error outputs this type too.
STDERR = '[data-mime-type="application/vnd.jupyter.stderr"]'


@pytest.fixture(scope="module")
def lab():
    with browser.lab() as running:
        yield running


@pytest.fixture(scope="module")
def chromium():
    with browser.chromium() as running:
        yield running


@pytest.fixture
def page(chromium):
    opened = chromium.new_page(viewport={"width": 1300, "height": 1000})
    yield opened
    opened.close()


def test_it_starts_at_notebook_00_asks_nothing_and_stays_on_this_machine(lab, page):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    browser.open_notebook(page, f"{lab.url}/?token={browser.TOKEN}")
    page.wait_for_timeout(5_000)  # the question about news came after about two seconds
    assert "/lab/tree/00_start_here.ipynb" in page.url
    assert page.locator(".jp-Dialog").count() == 0
    assert page.locator(".jp-toastContainer, .Toastify__toast").count() == 0
    local = (lab.url, lab.url.replace("http", "ws"), "data:", "blob:")
    assert [url for url in asked if not url.startswith(local)] == []
    assert lab.hosts_asked() == []


def nameless(page):
    """Controls of widgets that a screen reader would announce without a name, by their role."""
    cells = page.locator(".jp-Notebook .jp-OutputArea-output")
    counts = {}
    for role in ("slider", "combobox", "checkbox", "button"):
        named = cells.get_by_role(role, name=re.compile(r"\S"))
        counts[role] = cells.get_by_role(role).count() - named.count()
    return {role: count for role, count in counts.items() if count}


def readout(slider):
    """What stands beside a slider."""
    return slider.locator(".widget-readout").inner_text()


def told(slider):
    """What a screen reader says about the same."""
    return slider.get_by_role("slider").get_attribute("aria-valuetext")


@pytest.mark.parametrize("name", [path.name for path in notebooks.names()])
def test_a_notebook_runs_through(lab, page, name):
    browser.open_notebook(page, f"{lab.url}/lab/tree/{name}?token={browser.TOKEN}&reset")
    browser.run_all(page)
    cells = nbformat.read(notebooks.SOURCE / name, as_version=4).cells
    shown = page.locator(".jp-Notebook .jp-Cell")
    assert shown.count() == len(cells)
    for number, cell in enumerate(cells):
        here = shown.nth(number)
        wanted = "raises-exception" in cell.metadata.get("tags", [])
        assert (here.locator(STDERR).count() > 0) == wanted, f"cell {number + 1}"
    assert nameless(page) == {}
    for slider in page.locator(".jp-Notebook .widget-slider").all():
        before = readout(slider)
        assert told(slider) == before
        slider.get_by_role("slider").press("ArrowRight")
        if readout(slider) == before:  # it stands at its end
            slider.get_by_role("slider").press("ArrowLeft")
        assert told(slider) == readout(slider) != before
    assert "Box(" not in page.locator(".jp-Notebook").inner_text()
    for cell in page.locator(".attention-explorer td.plain").all():
        padding = cell.evaluate("cell => getComputedStyle(cell).padding")
        assert padding == "5px 4px"
    assert lab.hosts_asked() == []


def test_after_a_restart_a_prediction_shows_the_earlier_answer(lab, page):
    kept = lab.root / "progress.jsonl"
    browser.open_notebook(
        page, f"{lab.url}/lab/tree/01_bag_of_words.ipynb?token={browser.TOKEN}&reset"
    )
    browser.run_all(page)
    choices = page.locator(".lesson-choice")
    assert page.get_by_text("Your answer on an earlier run").count() == 0
    choices.nth(0).click()
    page.wait_for_selector('.jp-Notebook [role="alert"]')
    assert '"id": "01.p1", "kind": "predict"' in kept.read_text().splitlines()[-1]
    page.click("li.lm-MenuBar-item:has-text('Kernel')")
    page.click("li.lm-Menu-item:has-text('Restart Kernel and Run All Cells')")
    page.click(".jp-Dialog button.jp-mod-accept")
    page.wait_for_selector("text=Your answer on an earlier run: a)")
    assert page.get_by_text("Your answer on an earlier run").count() == 1
    choices.nth(1).click()
    page.wait_for_selector('.jp-Notebook [role="alert"]')
    assert page.get_by_text("Your answer on an earlier run").count() == 0
