"""Decks in a real browser, without a network: each slide fits, and explorers live."""

import re

import pytest

from tests.browser import axe
from tools import npm
from tools.lecture import __main__ as lecture

WIDTH, HEIGHT = 1280, 720
LEAST = 18  # px: letters on a slide; on a board at least 12, since a drawing keeps its lines
# What reaches beyond the slide or has too small letters, and whether there is anything at all.
MEASURE = """() => {
  const slide = Reveal.getCurrentSlide(), faults = [];
  let anything = false;
  for (const element of slide.querySelectorAll('*')) {
    const box = element.getBoundingClientRect();
    if (element.closest('aside, .hidden') || !box.width || !box.height) continue;
    anything = true;
    if (box.left < 0 || box.top < 0 || box.right > 1281 || box.bottom > 721)
      faults.push(`${element.tagName} reaches ${[box.left, box.top, box.right, box.bottom]}`);
    if (element.matches('p, li, h1, h2') && !element.closest('.live, .number')) {
      const size = parseFloat(getComputedStyle(element).fontSize);
      if (size < LEAST) faults.push(`${element.tagName} has ${size} px`);
    }
    if (element.matches('.board pre') && parseFloat(getComputedStyle(element).fontSize) < 12)
      faults.push('the board is too small');
  }
  if (!anything) faults.push('is empty');
  return faults;
}""".replace("LEAST", str(LEAST))


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


@pytest.mark.parametrize("name", ["one_lecture", "one_day", "eight_weeks"])
def test_each_slide_fits_and_nothing_is_asked_for(page, folder, name):
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
    page.goto((folder / "one_lecture.html").as_uri())
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
    assert "Expect hands at" in notes.inner_text() and "minutes" in notes.inner_text()


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
