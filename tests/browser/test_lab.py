"""The notebooks in real JupyterLab: make browser (not part of make test)."""

import json
import re

import nbformat
import pytest

from tests.browser import axe
from tools import browser, notebooks
from tools.site import live

# JupyterLab gives error outputs this type too.
OUTPUTS = ".jp-Notebook .jp-OutputArea-output"
NB01 = "01_bag_of_words.ipynb"
STDERR = '[data-mime-type="application/vnd.jupyter.stderr"]'


@pytest.fixture(scope="module")
def lab():
    with browser.lab() as running:
        yield running


@pytest.fixture(scope="module")
def context(chromium):
    """One for all: JupyterLab's scripts, 10 MB, are fetched and compiled once."""
    return chromium.new_context(viewport={"width": 1300, "height": 1000})


@pytest.fixture
def page(lab, context):
    opened = context.new_page()
    asked = []
    opened.on("request", lambda request: asked.append(request.url))
    yield opened
    opened.close()
    local = (lab.url, lab.url.replace("http", "ws"), "data:", "blob:")
    assert [url for url in asked if not url.startswith(local)] == []
    assert lab.hosts_asked() == []


def test_it_starts_at_notebook_00_and_asks_nothing(lab, page):
    browser.open_notebook(page, f"{lab.url}/?token={browser.TOKEN}")
    page.wait_for_timeout(5_000)  # the question about news came after about two seconds
    assert "/lab/tree/00_start_here.ipynb" in page.url
    assert page.locator(".jp-Dialog").count() == 0
    assert page.locator(".jp-toastContainer, .Toastify__toast").count() == 0


def test_who_only_opens_a_notebook_changes_nothing(lab, page):
    """A copy that JupyterLab saves by itself would get no updates on a hub."""
    browser.open_notebook(page, f"{lab.url}/lab/tree/{NB01}?token={browser.TOKEN}&reset")
    page.wait_for_timeout(2_000)
    assert page.locator(".lm-TabBar-tab.jp-mod-dirty").count() == 0
    page.click(".jp-Notebook .jp-CodeCell .cm-content >> nth=0")
    page.keyboard.type("# ")
    page.wait_for_selector(".lm-TabBar-tab.jp-mod-dirty")
    page.keyboard.press("Control+z")


def test_the_folded_set_up_runs_with_shift_enter_and_opens_with_a_click(lab, page):
    browser.open_notebook(page, f"{lab.url}/lab/tree/{NB01}?token={browser.TOKEN}&reset")
    cells = page.locator(".jp-Notebook .jp-CodeCell")
    assert cells.first.inner_text().startswith("# Set-up")  # the first line of more
    page.locator(".jp-Notebook .jp-MarkdownCell").first.click()
    for _ in range(3):
        page.keyboard.press("Shift+Enter")
    cells.nth(1).locator(".jp-OutputArea-output").wait_for(timeout=60_000)
    assert "series_map" in cells.nth(1).inner_text()  # which the set-up imports
    assert page.locator(STDERR).count() == 0
    cells.first.locator(".jp-Placeholder-content").click()
    assert "from lesson import" in cells.first.locator(".cm-content").inner_text()


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


def chosen(combobox):
    return combobox.evaluate("list => list.selectedIndex")


def by_keyboard(page, control, role):
    """Move a control with keys alone, by one step."""
    control.focus()
    at_the_top = role == "slider" and (
        control.get_attribute("aria-valuenow") == control.get_attribute("aria-valuemax")
    )
    page.keyboard.press(
        {
            "slider": "ArrowLeft" if at_the_top else "ArrowRight",
            "combobox": "ArrowUp" if role == "combobox" and chosen(control) else "ArrowDown",
            "checkbox": "Space",
            "button": "Enter",
        }[role]
    )


def by_mouse(page, control, role):
    """Move a control with the mouse alone, to another value."""
    if role == "slider":
        track = control.locator("xpath=ancestor::*[contains(@class, 'noUi-base')]")
        low, now, high = (
            float(control.get_attribute(f"aria-value{end}")) for end in ("min", "now", "max")
        )
        far = 0.01 if now - low > high - now else 0.99
        track.click(position={"x": far * track.bounding_box()["width"], "y": 2})
    elif role == "combobox":  # the open list is the operating system's, not the page's
        control.select_option(index=0 if chosen(control) else 1)
    else:
        control.click()


# What an explorer draws, and what stands on its buttons. A slider shows for a while that it was
# clicked, when the drawing has followed already.
SHOWN = """box => [...box.querySelectorAll('.attention-explorer, button')]
  .map(part => part.outerHTML).join()"""


def answers(page, explorer, before):
    """Wait until an explorer shows something else than before, and no fault."""
    page.wait_for_function(
        f"([box, before]) => ({SHOWN})(box) !== before", arg=[explorer.element_handle(), before]
    )
    assert page.locator('.attention-explorer [role="alert"]').count() == 0


def switch_theme(page, name):
    page.click("li.lm-MenuBar-item:has-text('Settings')")
    page.hover("li.lm-Menu-item:has-text('Theme')")
    page.click(f"li.lm-Menu-item:has-text('{name}')")
    light = "true" if name.endswith("Light") else "false"
    page.wait_for_selector(f"body[data-jp-theme-light='{light}']", state="attached")
    page.wait_for_timeout(500)


# They are run from the first cell to the last, as a learner runs them. nbval does the same with all
# others, in the same kernel: of them, what lives in JupyterLab alone is tried here.
WHOLE = ("00", "03", "13")
OTHERS = [path for path in notebooks.names() if path.name[:2] not in WHOLE]


def sources_of(path):
    nb = nbformat.read(path, as_version=4)
    return [cell.source for cell in nb.cells if cell.cell_type == "code"]


def what_lives_in(path):
    """A notebook's cells with explorers and predictions, and those that they need, in order."""
    sources, wanted = sources_of(path), {0}
    for n, source in enumerate(sources):
        if live.is_explorer(source):
            wanted |= {n, *range(len(live.needed(sources[:n], source)))}
        elif source.startswith("predict("):
            wanted.add(n)
    return [sources[n] for n in sorted(wanted)]


def write_notebook(lab, name, cells):
    """Put a notebook beside the others; returns its address."""
    nb = nbformat.v4.new_notebook(cells=cells, metadata=notebooks.METADATA)
    nbformat.write(nb, lab.root / name)
    return f"{lab.url}/lab/tree/{name}?token={browser.TOKEN}&reset"


@pytest.mark.parametrize("half", [0, 1])  # a longer page gets slower
def test_explorers_and_predictions_of_the_others_can_be_used_and_read_by_everybody(lab, page, half):
    sources = [source for path in OTHERS[half::2] for source in what_lives_in(path)]
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    browser.open_notebook(page, write_notebook(lab, f"others{half}.ipynb", cells))
    it_can_be_run_moved_answered_and_read_by_everybody(page, sources)


@pytest.mark.parametrize("number", WHOLE)
def test_a_notebook_can_be_run_moved_answered_and_read_by_everybody(lab, page, number):
    (path,) = notebooks.SOURCE.glob(f"{number}_*.ipynb")
    browser.open_notebook(page, f"{lab.url}/lab/tree/{path.name}?token={browser.TOKEN}&reset")
    it_can_be_run_moved_answered_and_read_by_everybody(page, sources_of(path))


def it_can_be_run_moved_answered_and_read_by_everybody(page, sources):
    browser.run_all(page)
    assert page.locator(".jp-Notebook .jp-CodeCell").count() == len(sources)
    assert page.locator(f".jp-Notebook {STDERR}").all_inner_texts() == []
    assert "Box(" not in page.locator(".jp-Notebook").inner_text()
    paddings = "cells => [...new Set(cells.map(cell => getComputedStyle(cell).padding))]"
    found = page.eval_on_selector_all(".attention-explorer td.plain", paddings)
    assert found in ([], ["5px 4px"])
    explorers = page.locator(".attention-explorer-box").all()
    assert len(explorers) == sum(map(live.is_explorer, sources)) >= 1
    for explorer in explorers:
        every_control_follows_keyboard_and_mouse(page, explorer)
    every_prediction_answers_to_keyboard_and_mouse(page)
    assert nameless(page) == {}
    assert axe.violations(page, OUTPUTS) == []
    switch_theme(page, "JupyterLab Dark")
    try:
        assert axe.violations(page, OUTPUTS, axe.COLOURS) == []
    finally:
        switch_theme(page, "JupyterLab Light")


def every_control_follows_keyboard_and_mouse(page, explorer):
    moved = 0
    for role in ("slider", "combobox", "checkbox", "button"):
        for control in explorer.get_by_role(role).and_(page.locator(":not([list])")).all():
            for move in (by_keyboard, by_mouse):
                before = explorer.evaluate(SHOWN)
                move(page, control, role)
                answers(page, explorer, before)
                moved += 1
    for box in explorer.locator("input[list]").all():  # its open list is the system's, too
        for text in box.evaluate("box => [...box.list.options].slice(-2).map(o => o.value)"):
            before = explorer.evaluate(SHOWN)
            box.fill(text)
            box.press("Enter")
            answers(page, explorer, before)
            moved += 1
    for box in explorer.get_by_role("textbox").all():
        before = explorer.evaluate(SHOWN)
        box.press("e")
        answers(page, explorer, before)
    for slider in explorer.locator(".widget-slider").all():
        assert told(slider) == readout(slider)
    assert moved >= 2


def every_prediction_answers_to_keyboard_and_mouse(page):
    for choices in page.locator(".widget-vbox:has(> .lesson-choice)").all():
        first, second = choices.locator(".lesson-choice").all()[:2]
        first.press("Enter")
        first.locator("i.fa-check, i.fa-times").wait_for()
        second.click()
        second.locator("i.fa-check, i.fa-times").wait_for()
        assert choices.locator('[role="alert"]').count() == 1


def pictures(page):
    """What can be seen of each picture, by class: ["attention-light"]."""
    return page.eval_on_selector_all(
        ".jp-Notebook .jp-OutputArea-output:has(.attention-light)",
        """outputs => outputs.map(output => [...output.querySelectorAll('img')]
           .filter(i => i.checkVisibility() && i.naturalWidth).map(i => i.className))""",
    )


def test_each_picture_is_seen_once_light_dark_and_untrusted(lab, page):
    browser.open_notebook(page, f"{lab.url}/lab/tree/{NB01}?token={browser.TOKEN}&reset")
    browser.run_all(page)
    count = len(pictures(page))
    assert count >= 4 and pictures(page) == count * [["attention-light"]]
    switch_theme(page, "JupyterLab Dark")
    try:
        assert pictures(page) == count * [["attention-dark"]]
        page.keyboard.press("Control+s")
        page.wait_for_selector(".lm-DockPanel-tabBar .lm-mod-current:not(.jp-mod-dirty)")
        copy = nbformat.read(lab.root / NB01, as_version=4)
        copy.metadata["copied"] = True  # nobody has signed this
        nbformat.write(copy, lab.root / "untrusted.ipynb")
        browser.open_notebook(
            page, f"{lab.url}/lab/tree/untrusted.ipynb?token={browser.TOKEN}&reset"
        )
        assert page.locator(".jp-OutputArea-output style").count() == 0
        assert pictures(page) == count * [["attention-light"]]
    finally:
        switch_theme(page, "JupyterLab Light")
    assert pictures(page) == count * [["attention-light"]]


def write(page, cell, text):
    """Replace the text of a code cell by hand, and run it."""
    editor = cell.locator(".cm-content")
    editor.click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)
    page.keyboard.press("Shift+Enter")


STUB = """def causal_mean(x):
    return torch.stack([x[:, {slice}].mean(dim=1) for t in range(x.shape[1])], dim=1)


causal_mean = check("01.1", causal_mean)"""


def test_an_exercise_wrong_then_right_and_a_prediction_are_there_after_a_reload(lab, page):
    (lab.root / "progress.jsonl").unlink(missing_ok=True)
    url = f"{lab.url}/lab/tree/{NB01}?token={browser.TOKEN}&reset"
    browser.open_notebook(page, url)
    browser.run_all(page)
    sources = [cell.source for cell in nbformat.read(notebooks.SOURCE / NB01, as_version=4).cells]
    stub, other = [
        page.locator(".jp-Notebook .jp-Cell").nth(
            next(n for n, source in enumerate(sources) if f'check("{id}"' in source)
        )
        for id in ("01.1", "01.3")
    ]
    assert "not attempted" in stub.inner_text()
    write(page, stub, STUB.format(slice=":t"))
    stub.get_by_text("✗ 01.1").wait_for()
    write(page, stub, STUB.format(slice=": t + 1"))
    stub.get_by_text("✓ 01.1").wait_for()
    page.locator(".lesson-choice").first.click()
    page.locator('.jp-Notebook [role="alert"]').wait_for()
    page.keyboard.press("Control+s")
    page.wait_for_selector(".lm-DockPanel-tabBar .lm-mod-current:not(.jp-mod-dirty)")

    browser.open_notebook(page, url)
    assert "[:, : t + 1]" in stub.inner_text() and "✓ 01.1" in stub.inner_text()
    browser.run_all(page)
    stub.get_by_text("✓ 01.1").wait_for()
    assert page.get_by_text("Your answer on an earlier run").count() == 1
    write(page, other, "progress()")
    shown = other.get_by_role("img", name="Your progress")
    shown.wait_for()
    alt = shown.get_attribute("alt")
    assert "Exercises: 1 done, 0 tried" in alt
    assert re.search("Predictions: (1 done|0 done, 0 corrected, 1 tried)", alt)


def test_after_a_restart_a_prediction_shows_the_earlier_answer(lab, page):
    kept = lab.root / "progress.jsonl"
    kept.unlink(missing_ok=True)
    browser.open_notebook(page, f"{lab.url}/lab/tree/{NB01}?token={browser.TOKEN}&reset")
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


def test_a_review_answers_to_the_keyboard_and_the_map_tells_of_it(lab, page):
    kept = lab.root / "progress.jsonl"
    said = {"version": 1, "time": "2026-01-02T10:00:00Z", "notebook": "01", "id": "01.p1"}
    kept.write_text(json.dumps({**said, "kind": "predict", "status": "wrong", "answer": "a"}))
    browser.open_notebook(page, f"{lab.url}/lab/tree/{NB01}?token={browser.TOKEN}&reset")
    first, second = page.locator(".jp-Notebook .jp-CodeCell").all()[1:3]  # the set-up is folded
    write(page, first, "from lesson import review, series_map; review()")
    every = first.locator(".lesson-choice")
    every.last.wait_for()
    every.first.focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    first.get_by_text("✓ Tokens 0 to 5 of sequence 1").wait_for()
    last = json.loads(kept.read_text().splitlines()[-1])
    assert (last["kind"], last["status"], last["answer"]) == ("review", "right", "b")
    kept.write_text(kept.read_text().replace(last["time"], said["time"]))
    write(page, second, 'series_map("01")')
    second.get_by_text("Questions due for review: 1 of 01.").wait_for()
    kept.unlink()


TRAINING = (
    "import torch\nfrom torch import nn\nfrom helpers.training import watched\n"
    "from lesson.builds.right import train\n"
    "model, ids = nn.Embedding(5, 5), torch.arange(9).expand(4, 9) % 5\nmodel.context_length = 8\n"
    "run = lambda n: watched(train, model, lambda: ids, n)",
    "losses = run(200_000)",
    "print(0 < len(losses) < 200_000)",
    "print(len(run(50)) == 50)",
)


def test_training_is_seen_live_and_stopped_by_its_button_or_an_interrupt(lab, page):
    cells = [nbformat.v4.new_code_cell(source) for source in TRAINING]
    browser.open_notebook(page, write_notebook(lab, "training.ipynb", cells))
    page.click("li.lm-MenuBar-item:has-text('Run')")
    page.click("li.lm-Menu-item:has-text('Run All Cells') >> nth=0")
    first, result, finished = page.locator(".jp-Notebook .jp-Cell").all()[1:]

    step = first.get_by_text("s left")
    step.wait_for(timeout=60_000)
    seen = {step.inner_text() for _ in range(20) if not page.wait_for_timeout(100)}
    assert len(seen) > 3, "it is drawn again and again"
    assert first.get_by_role("img", name="Loss by step").is_visible()
    first.get_by_role("button", name="Pause").click()
    first.get_by_text("· paused").wait_for(timeout=5_000)
    first.get_by_role("button", name="Go on").click()
    step.wait_for(timeout=5_000)
    first.get_by_role("button", name="Stop").click()
    first.get_by_text("Stopped after").wait_for(timeout=5_000)
    assert "of 200,000 steps. The model keeps what it has learned." in first.inner_text()
    assert first.get_by_role("button", name="Stop").count() == 0
    result.get_by_text("True", exact=True).wait_for()
    finished.get_by_text("True", exact=True).wait_for()

    write(page, first, "losses = run(200_000)")
    step.wait_for()
    page.click("li.lm-MenuBar-item:has-text('Kernel')")
    page.click("li.lm-Menu-item:has-text('Interrupt Kernel')")
    first.get_by_text("Stopped after").wait_for(timeout=5_000)
    assert page.locator(STDERR).count() == 0
    page.keyboard.press("Control+s")  # what stays is read without a kernel
    page.wait_for_selector(".lm-DockPanel-tabBar .lm-mod-current:not(.jp-mod-dirty)")
    (output,) = nbformat.read(lab.root / "training.ipynb", as_version=4).cells[1].outputs
    assert set(output.data) == {"text/plain", "text/html"} and "<svg" in output.data["text/html"]
