"""Slides in a real browser: nothing is cut off or too small, and live ones can be used."""

import re

import pytest

from tests.browser import axe
from tools import browser, notebooks
from tools.slides import live, static

WIDTH, HEIGHT = 1280, 720
# What stands on the current slide: how far it reaches, and how large its letters are. Formulas are
# drawn as SVG, with a hidden text for screen readers.
MEASURE = """() => {
  const slide = Reveal.getCurrentSlide();
  const found = {places: [], hidden: [],
                 text: [], code: [], numbers: [], heatmaps: [], pictures: []};
  const hidden = 'aside, mjx-assistive-mml';
  for (const element of slide.querySelectorAll('*')) {
    const box = element.getBoundingClientRect();
    if (element.closest(hidden) || !box.width || !box.height) continue;
    found.places.push([box.left, box.top, box.right, box.bottom]);
    const {overflowX, overflowY} = getComputedStyle(element);
    if (overflowX !== 'visible' && element.scrollWidth > element.clientWidth + 1 ||
        overflowY !== 'visible' && element.scrollHeight > element.clientHeight + 1)
      found.hidden.push(element.className);
  }
  const walk = document.createTreeWalker(slide, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const element = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || element.closest(hidden + ', svg, sup, sub')) continue;
    const live = element.closest('.live');
    const size = parseFloat(getComputedStyle(element).fontSize) * (live ? live.style.zoom : 1);
    const kind = element.closest('pre, code') ? 'code'
               : live && !element.closest('p') ? 'numbers' : 'text';
    found[kind].push([size, walk.currentNode.data.trim().slice(0, 30)]);
  }
  for (const image of slide.querySelectorAll('img'))  // two dots a px of the notebook
    found[image.alt.startsWith('Heatmap') ? 'heatmaps' : 'pictures'].push(
      [2 * image.getBoundingClientRect().width / image.naturalWidth, image.alt.slice(0, 30)]);
  return found;
}"""
# The least size of letters on a slide, in px; of pictures, how much larger than in the notebook:
# heatmaps have numbers of 10 px there, and other pictures letters of 11 px.
LEAST = {"text": 22, "code": 18, "numbers": 14, "heatmaps": 14 / 10, "pictures": 14 / 11}


@pytest.fixture
def page(chromium):
    opened = chromium.new_page(viewport={"width": WIDTH, "height": HEIGHT})
    yield opened
    opened.close()


@pytest.fixture(scope="module", params=notebooks.names(), ids=lambda path: path.stem)
def url(request, tmp_path_factory):
    """The static slides of a notebook."""
    return static.write(request.param, tmp_path_factory.mktemp("slides")).as_uri()


def test_static_slides_fit_and_can_be_read_without_network(page, url):
    asked = []
    page.route(re.compile("^(?!file:|data:|blob:)"), lambda route: route.abort())
    page.on("request", lambda request: asked.append(request.url))
    page.goto(url)
    page.evaluate("MathJax.startup.promise")
    faults = []
    for number in range(page.evaluate("Reveal.getSlides().length")):
        page.evaluate(
            """number => {
              const {h, v} = Reveal.getIndices(Reveal.getSlides()[number]);
              Reveal.slide(h, v, 99);  // with all fragments
            }""",
            number,
        )
        found = page.evaluate(MEASURE)
        said = [f"scrolls inside: {name}" for name in found["hidden"]]
        if not any(found[kind] for kind in LEAST):
            said.append("is empty")
        lefts, tops, rights, bottoms = zip(*found["places"], strict=True)
        if min(lefts) < 0 or min(tops) < 0 or max(rights) > WIDTH or max(bottoms) > HEIGHT:
            said.append(f"reaches {min(lefts), min(tops), max(rights), max(bottoms)}")
        said += [f"{kind} {x}" for kind in LEAST for x in found[kind] if x[0] < LEAST[kind] - 0.01]
        faults += [f"slide {number + 1}: {fault}" for fault in said]
    assert faults == []
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    assert (
        page.locator("mjx-container").count() > 0 or "$" not in page.locator(".slides").inner_text()
    )


def test_axe_finds_nothing_serious_on_static_slides(page, url):
    page.goto(f"{url}?print-pdf")  # all slides below each other
    page.wait_for_selector(".pdf-page")
    page.evaluate("MathJax.startup.promise")
    # All but one would count as hidden, and so as right.
    page.evaluate(
        "for (const slide of document.querySelectorAll('.slides section')) "
        "slide.removeAttribute('aria-hidden')"
    )
    assert page.locator(".pdf-page section").last.is_visible()
    assert axe.violations(page) == []


def test_live_slides_have_widgets_that_follow_mouse_and_keyboard(page):
    with browser.lab(live.SETTINGS) as lab:
        browser.open_notebook(
            page, f"{lab.url}/lab/tree/03_softmax_masking.ipynb?token={browser.TOKEN}&reset"
        )
        browser.run_all(page)
        page.locator(".jp-Notebook .jp-Cell").first.click()
        page.click("[data-command='deck:toggle']")
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
