"""Slides in a real JupyterLab: one click runs the notebook and shows it, and it can be used."""

import pytest

from tools import browser
from tools.slides import live


@pytest.fixture
def page(chromium):
    opened = chromium.new_page(viewport={"width": 1280, "height": 720})
    yield opened
    opened.close()


def test_live_slides_have_widgets_that_follow_mouse_and_keyboard(page):
    with browser.lab(live.SETTINGS) as lab:
        browser.open_notebook(
            page, f"{lab.url}/lab/tree/03_softmax_masking.ipynb?token={browser.TOKEN}&reset"
        )
        page.get_by_role("button", name="Present").click()
        page.locator("body[data-jp-deck-mode='presenting']").wait_for(
            state="attached", timeout=60_000
        )
        page.locator(".jp-Deck .jp-Cell.jp-deck-mod-visible h1").wait_for()
        shown = page.locator(".jp-Deck .jp-Cell.jp-deck-mod-visible")

        def go_to(text):
            for _ in range(80):
                if text in " ".join(shown.all_inner_texts()):
                    return
                page.keyboard.press("Space")
                page.wait_for_timeout(200)
            raise AssertionError(f"no slide shows {text}")

        go_to("Prediction 03.p1")
        assert shown.count() == 1, "the answer is not on the slide"
        size = "element => parseFloat(getComputedStyle(element).fontSize)"
        shown.get_by_role("button", name="b)").click()
        shown.get_by_text("Try another answer").wait_for()
        shown.get_by_role("button", name="d)").press("Enter")
        shown.get_by_role("alert").get_by_text("✓").wait_for()
        assert shown.get_by_role("button", name="d)").evaluate(size) >= 22

        page.locator(".jp-Deck .jp-Notebook").focus()
        page.keyboard.press("Escape")  # out of the buttons
        if page.locator("body[data-jp-deck-mode='presenting']").count() == 0:
            page.click("[data-command='deck:toggle']")
        go_to("temperature")
        go_to("token 4\n")
        slider = shown.locator(".widget-slider").first
        before = slider.locator(".widget-readout").inner_text()
        slider.get_by_role("slider").press("ArrowRight")
        by_key = slider.locator(".widget-readout").inner_text()
        slider.locator(".noUi-base").click()
        by_mouse = slider.locator(".widget-readout").inner_text()
        assert len({before, by_key, by_mouse}) == 3
        assert lab.hosts_asked() == []
