"""Decks in a real browser, without a network: slides fit and can be read, explorers live."""

import json
import re

import pytest

from tests.browser import axe
from tests.browser.test_sheets import sheets
from tools import npm
from tools.lecture import __main__ as lecture
from tools.lecture import plan as planned

WIDTH, HEIGHT = 1280, 720
LEAST = 24  # px: letters on a slide that is 1280 px wide, so that the last row reads them
# Explorers whose drawings are as wide as a slide with smaller letters: their least, in px.
SMALL = {"heads": 13, "rotary": 16, "painter": 13, "moments": 11}
# What reaches beyond the slide or has too small letters, and whether there is anything at all.
# matplotlib writes letters of size s as outlines in a group that is scaled by s / 100.
MEASURE = """() => {
  const slide = Reveal.getCurrentSlide(), faults = [], seen = slide.querySelectorAll('*');
  const drawn = [...seen].filter(one => one.getClientRects().length);
  const least = SMALL[slide.querySelector('[data-live]')?.dataset.live] ?? LEAST;
  let letters = 0;
  const found = (size, text) => {
    letters += 1;
    if (size < least - 0.05) faults.push(`letters of ${size.toFixed(1)} px: ${text.trim()}`);
  };
  for (const element of drawn) {
    if (element.closest('aside, .hidden')) continue;
    const box = element.getBoundingClientRect();
    if (box.left < 0 || box.top < 0 || box.right > 1281 || box.bottom > 721)
      faults.push(`${element.tagName} reaches ${[box.left, box.top, box.right, box.bottom]}`);
    if (element.tagName === 'IMG') {
      const [kind, data] = element.src.split(',');
      if (kind !== 'data:image/svg+xml;base64') faults.push(`a picture of dots, ${kind}`);
      if (kind !== 'data:image/svg+xml;base64') continue;
      const svg = new DOMParser().parseFromString(atob(data), 'image/svg+xml').documentElement;
      const [, , wide, high] = svg.getAttribute('viewBox').split(' ').map(Number);
      const scale = Math.min(element.clientWidth / wide, element.clientHeight / high);
      for (const group of svg.querySelectorAll('g[id^=text_] > g[transform*=scale]')) {
        const size = /scale\\(([\\d.]+)/.exec(group.getAttribute('transform'))[1];
        found(100 * scale * size, 'outlines');
      }
    }
    for (const node of element.childNodes) {
      if (node.nodeType !== Node.TEXT_NODE || !node.data.trim()) continue;
      const size = parseFloat(getComputedStyle(element).fontSize);
      const svg = element.closest('svg');
      const inside = svg && svg.getBoundingClientRect().width / svg.width.baseVal.value;
      if (size) found(size * (inside ?? element.currentCSSZoom), node.data);
    }
  }
  if (!letters) faults.push('has no letters');
  return [...new Set(faults)];
}""".replace("LEAST", str(LEAST)).replace("SMALL", json.dumps(SMALL))
DECKS = [plan.file.removesuffix(".html") for plan in planned.plans()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """All decks, written once."""
    npm.need("browser")
    made = tmp_path_factory.mktemp("lecture")
    lecture.write(made)
    return made


@pytest.fixture
def page(chromium):
    opened = chromium.new_page(viewport={"width": WIDTH, "height": HEIGHT})
    opened.asked, opened.errors = [], []
    opened.route(re.compile("^(?!file:|data:|blob:)"), lambda route: route.abort())
    opened.on("request", lambda request: opened.asked.append(request.url))
    opened.on("pageerror", lambda error: opened.errors.append(str(error)))
    yield opened
    opened.close()


def show(page, number):
    page.evaluate("number => Reveal.slide(number)", number)


@pytest.mark.parametrize("name", DECKS)
def test_each_slide_fits_has_large_letters_and_asks_for_nothing(page, folder, name):
    page.goto((folder / f"{name}.html").as_uri())
    page.wait_for_function(
        "document.querySelectorAll('[data-live]:not([data-ready])').length === 0"
    )
    faults = []
    for number in range(page.evaluate("Reveal.getSlides().length")):
        show(page, number)
        faults += [f"slide {number + 1}: {fault}" for fault in page.evaluate(MEASURE)]
    assert faults == [] and page.errors == []
    assert [url for url in page.asked if not url.startswith(("file:", "data:", "blob:"))] == []


def test_an_explorer_lives_and_the_keys_turn_pages_after_a_click(page, folder):
    page.goto((folder / "one_day.html").as_uri())
    number = page.evaluate(
        "Reveal.getSlides().findIndex(slide => slide.querySelector('[data-live=context]'))"
    )
    show(page, number)
    page.wait_for_selector("section.present [data-live=context][data-ready]")
    view = page.locator("section.present .view")
    before = view.inner_text()
    slider = page.locator("section.present input[type=range]")
    box = slider.bounding_box()
    page.mouse.click(box["x"] + 0.9 * box["width"], box["y"] + box["height"] / 2)
    assert view.inner_text() != before
    page.keyboard.press("PageDown")
    assert page.evaluate("Reveal.getIndices().h") == number + 1


def test_the_notes_open_beside_the_slides(page, folder):
    page.goto((folder / "one_lecture.html").as_uri())
    number = page.evaluate(
        "Reveal.getSlides().findIndex(slide => slide.className.includes('prediction'))"
    )
    show(page, number)
    with page.expect_popup() as opened:
        page.keyboard.press("s")
    notes = opened.value.locator(".speaker-controls-notes .value")
    notes.get_by_text("Right:").wait_for()
    assert "Expect hands at" in notes.inner_text() and "Vote 00.p1." in notes.inner_text()


def test_axe_finds_nothing_serious(page, folder):
    page.goto(f"{(folder / 'one_lecture.html').as_uri()}?print-pdf")  # all slides below each other
    page.wait_for_selector(".pdf-page")
    # All but one would count as hidden, and so as right.
    page.evaluate(
        "for (const slide of document.querySelectorAll('.slides section')) "
        "slide.removeAttribute('aria-hidden')"
    )
    assert page.locator(".pdf-page section").last.is_visible()
    assert axe.violations(page) == []


@pytest.mark.parametrize("name", DECKS)
def test_a_run_sheet_prints_on_one_page(chromium, folder, name):
    page = chromium.new_page()
    page.goto((folder / f"run_sheet_{name}.html").as_uri())
    assert sheets(page.pdf(format="A4", prefer_css_page_size=True)) == 1
    page.close()


def test_the_lines_of_softmax_come_one_by_one(page, folder):
    page.goto((folder / "one_lecture.html").as_uri())
    number = page.evaluate(
        "Reveal.getSlides().findIndex(slide => /e to the power +0.37/.test(slide.innerText))"
    )
    show(page, number)
    lines = page.locator("section.present pre")
    shown = "lines => lines.filter(line => getComputedStyle(line).visibility === 'visible').length"
    counts = []
    for _ in range(4):
        counts.append(lines.evaluate_all(shown))
        page.keyboard.press("Space")
    assert counts == [1, 2, 3, 4]
