"""The whole site in a real browser, from files and without a network: make browser."""

import re

import nbformat
import pytest

from tests.browser import axe
from tests.site_links import dead_links, parsed
from tools import browser, notebooks
from tools.site import __main__ as site
from tools.site import live

NAMES = [path.stem for path in notebooks.names()]
PAGES = ["index", *NAMES, "glossary", "search", "cheatsheet"]
VIEW = "[data-live] .view"
SET = """([control, place]) => {
  if (control.type === 'checkbox') control.checked = Boolean(place);
  else if (control.type === 'range') control.value = place;
  else control.selectedIndex = place;
  control.dispatchEvent(new Event('input', {bubbles: true}));
}"""
CUT = """[...document.querySelectorAll('main p, main li, main h1, main h2, main h3')]
  .filter(tag => !tag.closest('.scroll') && tag.getBoundingClientRect().right > 360)
  .map(tag => tag.textContent.slice(0, 60))"""
# As the browser writes HTML: the same for what Python drew and for what the page shows.
AS_WRITTEN = """html => {
  const box = document.createElement('div');
  box.innerHTML = html;
  return box.innerHTML;
}"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("site")
    site.build(notebooks.names(), made)
    return made


@pytest.fixture
def opened(chromium, folder):
    """Open pages from files: opened("glossary", width=360)."""
    contexts, asked, errors = [], [], []

    def open_page(name, width=1280, query="", **settings):
        viewport = {"width": width, "height": 900}
        context = chromium.new_context(viewport=viewport, offline=True, **settings)
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("requestfailed", lambda request: errors.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"{(folder / f'{name}.html').as_uri()}{query}")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    assert errors == []


def explorer_page(opened, name):
    page = opened(name)
    page.wait_for_selector("[data-ready]", state="attached")
    return page


def test_every_link_and_anchor_leads_somewhere(folder):
    assert dead_links(folder) == []


def test_the_site_is_small(folder):
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    assert size <= 15_000_000


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_serious(opened, name, scheme):
    page = opened(name, color_scheme=scheme, query="?q=mask" if name == "search" else "")
    page.evaluate("for (const details of document.querySelectorAll('details')) "
                  "{ details.removeAttribute('name'); details.open = true; }")  # fmt: skip
    assert axe.violations(page) == []


@pytest.mark.parametrize("name", PAGES)
def test_the_text_needs_no_sideways_scrolling_on_a_phone(opened, name):
    page = opened(name, width=360, query="?q=mask" if name == "search" else "")
    page.evaluate("for (const details of document.querySelectorAll('details')) details.open = true")
    page.wait_for_timeout(200)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.evaluate(CUT) == []


@pytest.mark.parametrize("name", NAMES)
def test_three_states_of_every_control_are_what_python_draws(opened, name):
    nb = nbformat.read(notebooks.SOURCE / f"{name}.ipynb", as_version=4)
    call = next(c.source for c in nb.cells if live.is_explorer(c.source))
    explorer = live.explorer_of(nb)
    shown = live.Live(call, explorer)
    page = explorer_page(opened, name)
    controls = page.query_selector_all("fieldset input, fieldset select")
    assert len(controls) == len(shown.values) >= 1

    def compare():
        html, words = live.state(explorer)
        assert page.inner_html(VIEW) == page.evaluate(AS_WRITTEN, html)
        assert page.text_content("[aria-live]") == words

    compare()
    for control, (key, values) in zip(controls, shown.values.items(), strict=True):
        first = explorer.controls[key].value
        for place in sorted({0, len(values) // 2, len(values) - 1}):
            explorer.controls[key].value = values[place]
            page.evaluate(SET, [control, place])
            compare()
        explorer.controls[key].value = first
        page.evaluate(SET, [control, values.index(first)])
    compare()


@pytest.mark.parametrize("name", NAMES)
def test_controls_have_names_and_follow_the_keyboard(opened, name):
    page = explorer_page(opened, name)
    fieldset = page.locator("[data-live] fieldset")
    for role in ("slider", "checkbox", "combobox"):
        for control in fieldset.get_by_role(role).all():
            before = page.inner_html(VIEW), page.text_content("[aria-live]")
            control.focus()
            there, back = {"checkbox": ("Space", "Space")}.get(role, ("ArrowUp", "ArrowDown"))
            page.keyboard.press(there)
            if page.inner_html(VIEW) == before[0]:  # it stands at its end
                page.keyboard.press(back)
            after = page.inner_html(VIEW), page.text_content("[aria-live]")
            assert before[0] != after[0] and before[1] != after[1]
            if role == "slider":
                beside = control.locator("+ output").inner_text()
                assert control.get_attribute("aria-valuetext") == beside
    labels = fieldset.locator("label").all_inner_texts()
    assert len(labels) == fieldset.locator("input, select").count()
    assert all(label.strip() for label in labels)
    assert all(fieldset.get_by_label(label, exact=True).count() == 1 for label in labels)


def test_the_first_thing_to_reach_by_keyboard_leads_to_the_text(opened):
    page = opened("05_scaling")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the text"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    box = page.evaluate("document.activeElement.getBoundingClientRect().left")
    assert box >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_the_choice_of_a_dark_page_holds_for_the_next_page(opened):
    page = opened("index", color_scheme="light")
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("button", name="Dark page").click()
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.click("text=Glossary >> nth=0")
    page.wait_for_selector("h1:has-text('Glossary')")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark != light
    page.get_by_role("button", name="Light page").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == light


def test_each_picture_is_seen_once_and_follows_the_page(opened):
    seen = """() => [...new Set([...document.querySelectorAll('figure')].map(figure =>
      [...figure.querySelectorAll('img')].filter(i => i.checkVisibility()).map(i => i.className)
        .join()))]"""
    for scheme, other in (("light", "dark"), ("dark", "light")):
        page = opened("03_softmax_masking", color_scheme=scheme)
        assert page.evaluate(seen) == [f"on-{scheme}"]
        cell = page.locator(f"{VIEW} td.plain").first
        before = cell.evaluate("cell => getComputedStyle(cell).backgroundColor")
        page.get_by_role("button", name=f"{other.title()} page").click()
        assert page.evaluate(seen) == [f"on-{other}"]
        assert cell.evaluate("cell => getComputedStyle(cell).backgroundColor") != before
    page.emulate_media(media="print")
    assert page.evaluate(seen) == ["on-light"]
    assert opened("03_softmax_masking", color_scheme="dark").evaluate(seen) == ["on-dark"]


def test_a_search_from_any_page_leads_to_a_section(opened):
    page = opened("07_the_block")
    page.get_by_role("searchbox").fill("causal mask")
    page.keyboard.press("Enter")
    page.wait_for_selector("#results li")
    assert "/search.html?q=causal+mask" in page.url
    links = page.locator("#results a").all_inner_texts()
    assert links[0] == "causal mask" and "Keep the future out" in links
    page.locator("#results a", has_text="Keep the future out").click()
    page.wait_for_selector("h1:has-text('How do scores become weights?')")
    page.wait_for_timeout(1000)  # it scrolls smoothly
    section = page.locator("[id='Keep-the-future-out']")
    top = section.evaluate("heading => heading.getBoundingClientRect().top")
    assert 0 <= top < 200
    page.go_back()
    page.get_by_role("searchbox").fill("mask zebra")
    assert "No section has “mask zebra”" in page.inner_text("#found")
    assert page.locator("#results li").count() == 0


def test_without_javascript_a_page_has_all_but_the_controls(opened):
    page = opened("03_softmax_masking", java_script_enabled=False)
    assert page.locator(".prediction").count() == 5
    summary = page.locator(".prediction summary").first
    summary.click()
    assert page.locator(".prediction details[open] p").first.is_visible()
    assert page.locator(f"{VIEW} table").is_visible()
    assert page.locator("fieldset input").first.is_disabled()
    assert page.locator("text=The controls need JavaScript").is_visible()
    assert page.locator(".katex").count() >= 5


def test_pictures_and_letters_of_formulas_are_loaded(opened):
    page = opened("04_one_head")
    page.evaluate("for (const image of document.images) image.loading = 'eager'")
    page.wait_for_function("[...document.images].every(image => image.complete)")
    assert page.evaluate("[...document.images].every(image => image.naturalWidth > 0)")
    assert page.evaluate("document.fonts.check('16px KaTeX_Main')")
    assert page.evaluate("[...document.fonts].some(font => font.status === 'loaded')")


def test_paper_has_the_text_and_no_controls(opened):
    page = opened("03_softmax_masking", color_scheme="dark")
    page.emulate_media(media="print")
    assert page.locator("header nav, fieldset, .contents").first.is_hidden()
    assert page.locator("h1").is_visible()
    white = "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == white


@pytest.mark.parametrize("paper", ["A4", "Letter"])
def test_the_cheat_sheet_prints_on_one_sheet(opened, paper):
    pdf = opened("cheatsheet").pdf(format=paper)
    assert len(re.findall(rb"/Type */Page\b(?!s)", pdf)) == 1


def test_headings_have_the_anchors_that_jupyterlab_gives_them(chromium, folder):
    soups = parsed(folder)
    ids = "tags => tags.map(tag => tag.id || tag.dataset.jupyterId)"
    with browser.lab() as lab:
        for name in NAMES:
            page = chromium.new_page(viewport={"width": 1300, "height": 1000})
            page.goto(f"{lab.url}/lab/tree/{name}.ipynb?token={browser.TOKEN}&reset")
            page.wait_for_selector(".jp-Notebook .jp-RenderedMarkdown h1", timeout=90_000)
            headings = [tag["id"] for tag in soups[f"{name}.html"].main.select("h1, h2, h3")]
            selector = ", ".join(f".jp-Notebook .jp-RenderedMarkdown h{i}" for i in (1, 2, 3))
            page.wait_for_function(
                "([selector, n]) => document.querySelectorAll(selector).length >= n",
                arg=[selector, len(headings)], timeout=60_000,
            )  # fmt: skip
            assert page.eval_on_selector_all(selector, ids) == headings
            page.close()
