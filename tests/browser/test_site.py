"""The whole site in a real browser, from files and without a network: make browser."""

import re

import nbformat
import pytest
import torch

from helpers.gpt import encode, next_token_probabilities
from helpers.training import Corpus, drop_repeats, python_help, shipped_model
from lesson import TERMS
from tests.browser import axe
from tests.site_links import dead_links, parsed
from tools import browser, notebooks
from tools.site import __main__ as site
from tools.site import live

NAMES = [path.stem for path in notebooks.names()]
PAGES = ["index", *NAMES, "glossary", "search", "cheatsheet", "checklist"]
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
    page.locator("[data-live]").first.scroll_into_view_if_needed()
    page.wait_for_function("!document.querySelector('[data-live]:not([data-ready])')")
    return page


def test_every_link_and_anchor_leads_somewhere(folder):
    assert dead_links(folder) == []


def test_the_site_is_small(folder):
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    assert size <= 15_000_000


@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_serious(opened, name):
    page = opened(name, color_scheme="light", query="?q=mask" if name == "search" else "")
    page.evaluate("for (const details of document.querySelectorAll('details')) "
                  "{ details.removeAttribute('name'); details.open = true; }")  # fmt: skip
    assert axe.violations(page) == []
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.emulate_media(color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
    assert axe.violations(page, only=axe.COLOURS) == []


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
    page = explorer_page(opened, name)
    boxes = page.locator("[data-live]").all()
    for box, (call, explorer) in zip(boxes, live.explorers_of(nb).items(), strict=True):
        shown = live.Live(call, explorer)
        controls = box.locator("fieldset :is(input, select)").element_handles()
        assert len(controls) == len(shown.values) >= 1

        def compare(box=box, explorer=explorer):
            html, words = live.state(explorer)
            assert box.locator(".view").inner_html() == page.evaluate(AS_WRITTEN, html)
            assert box.locator("[aria-live]").text_content() == words

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
    for box in page.locator("[data-live]").all():
        fieldset, view, said = map(box.locator, ("fieldset", ".view", "[aria-live]"))
        for role in ("slider", "checkbox", "combobox"):
            for control in fieldset.get_by_role(role).all():
                before = view.inner_html(), said.text_content()
                control.focus()
                there, back = {"checkbox": ("Space", "Space")}.get(role, ("ArrowUp", "ArrowDown"))
                page.keyboard.press(there)
                if view.inner_html() == before[0]:  # it stands at its end
                    page.keyboard.press(back)
                after = view.inner_html(), said.text_content()
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
    page.wait_for_selector("#results li")
    page.get_by_role("searchbox").fill("mask zebra")
    assert "No section has “mask zebra”" in page.inner_text("#found")
    assert page.locator("#results li").count() == 0


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("sofmax", "softmax"),
        ("tarnsfomer", "transformer"),
        ("Causl mask", "causal mask"),
        ("mutli-head", "multi-head"),
    ],
)
def test_a_search_shows_what_was_meant_and_says_so(opened, typed, meant):
    page = opened("search", query=f"?q={typed}")
    page.wait_for_selector("#results li")
    assert page.inner_text("#found").startswith(f"Nothing for “{typed}”; showing “{meant}”. ")
    said, results = page.inner_text("#found"), page.inner_text("#results")
    page.get_by_role("searchbox").fill(meant)
    assert said.endswith(page.inner_text("#found")) and page.inner_text("#results") == results


@pytest.mark.parametrize(
    ("a", "b", "off"),
    [
        ("mask", "mask", 0),
        ("mask", "masks", 1),
        ("mask", "msak", 1),
        ("mask", "", 4),
        ("ab", "ca", 2),
    ],
)
def test_how_far_two_words_are_apart(opened, a, b, off):
    page = opened("search")
    page.wait_for_function("'SECTIONS' in window && typeof distance === 'function'")
    assert page.evaluate("([a, b]) => [distance(a, b), distance(b, a)]", [a, b]) == [off, off]


def test_code_is_copied_as_it_stands_in_the_notebook(opened):
    page = opened("03_softmax_masking")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    nb = nbformat.read(notebooks.SOURCE / "03_softmax_masking.ipynb", as_version=4)
    code = next(c.source for c in nb.cells if c.source.startswith("texts = "))
    block = page.locator("pre.code", has_text="by_hand = torch").first
    button = block.locator("xpath=preceding-sibling::button[1]")
    assert button.evaluate("button => getComputedStyle(button).opacity") == "0"
    button.focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Shift+Tab")  # as one comes by keyboard
    assert button.evaluate("button => getComputedStyle(button).opacity") == "1"
    page.keyboard.press("Enter")
    page.wait_for_selector("[role=status]:has-text('Copied')", state="attached")
    assert page.evaluate("navigator.clipboard.readText()").strip() == code
    page.wait_for_selector("[role=status]:has-text('Copied')", state="detached")
    page.evaluate("delete Clipboard.prototype.writeText")  # as in older browsers
    other = page.locator("pre.code", has_text="hungry_cat = rate").first
    other.hover()
    other.locator("xpath=preceding-sibling::button[1]").click()
    page.wait_for_selector("[role=status]:has-text('Copied')", state="attached")
    assert "hungry_cat = rate" in page.evaluate("navigator.clipboard.readText()")


def test_the_meaning_of_a_term_is_shown_by_pointer_and_by_keyboard(opened):
    page = opened("05_scaling")
    term, tip = page.locator(".term", has_text="standard deviation").first, page.locator(".tip")
    meaning = TERMS["standard deviation"].meaning
    assert tip.is_hidden()
    term.hover()
    assert meaning in tip.inner_text()
    tip.hover()  # it stays, so that it can be read enlarged
    page.wait_for_timeout(400)
    assert tip.is_visible()
    page.mouse.move(5, 5)
    tip.wait_for(state="hidden")
    term.evaluate("term => term.previousElementSibling?.blur()")
    page.locator(".term", has_text="variance").first.focus()
    page.keyboard.press("Tab")
    assert meaning in tip.inner_text()
    box, word = tip.bounding_box(), term.bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 1280
    assert 0 <= box["y"] - word["y"] - word["height"] <= 10 or box["y"] + box["height"] <= word["y"]
    assert axe.violations(page) == []
    page.keyboard.press("Escape")
    assert tip.is_hidden()
    page.keyboard.press("Enter")
    page.wait_for_url("**/glossary.html#standard-deviation")


def test_a_tap_shows_the_meaning_and_a_second_one_leads_to_the_glossary(opened):
    page = opened("05_scaling", width=360, has_touch=True, is_mobile=True)
    term, tip = page.locator(".term", has_text="standard deviation").first, page.locator(".tip")
    term.scroll_into_view_if_needed()
    term.tap()
    assert TERMS["standard deviation"].meaning in tip.inner_text()
    box = tip.bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 360
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.touchscreen.tap(180, 100)
    assert tip.is_hidden()
    term.tap()
    term.tap()
    page.wait_for_url("**/glossary.html#standard-deviation")


def test_a_phone_has_a_small_header_with_all_pages(opened):
    page = opened("12_inside_a_trained_model", width=390, has_touch=True, is_mobile=True)
    assert page.locator("header").bounding_box()["height"] <= 90
    here = page.locator("header [aria-current=page]").bounding_box()
    assert 100 <= here["x"] <= 290  # in the middle of the list, which scrolls
    page.get_by_role("link", name="Search").tap()
    page.wait_for_selector("h1:has-text('Search')")
    assert page.get_by_role("searchbox").is_visible()
    assert opened("04_one_head").locator("header").bounding_box()["height"] <= 60


@pytest.mark.parametrize("script", [True, False])
def test_a_phone_shows_what_this_is_and_a_model_that_loses_the_cat(opened, script):
    page = opened("index", width=390, java_script_enabled=script)
    page.set_viewport_size({"width": 390, "height": 844})
    shown = page.locator(".nouns > div:visible")
    for part in (page.locator(".lead"), *page.locator(".ways a").all(), shown):
        box = part.bounding_box()
        assert box["y"] + box["height"] <= 844
    assert "slept is 2.6 times as likely as melted" in shown.inner_text()
    page.get_by_label("none").check()
    assert shown.count() == 1
    assert "melted is 7.6 times as likely as slept" in shown.inner_text()


def test_a_phone_folds_long_code_and_has_no_button_over_it(opened):
    page = opened("03_softmax_masking", width=390)
    folded = page.locator("details.long")
    assert folded.count() > 4 and page.locator("details.long[open]").count() == 0
    assert page.locator(".copy:visible").count() == 0
    page.set_viewport_size({"width": 1280, "height": 900})
    page.wait_for_function("document.querySelectorAll('details.long:not([open])').length === 0")
    assert page.locator(".long > summary:visible").count() == 0


def test_a_link_into_an_optional_part_finds_it_open_on_a_phone(opened):
    place = "Where-no-letter-occurs-twice"
    for query, shown in (("", False), (f"#{place}", True)):
        page = opened("12_inside_a_trained_model", width=390, query=query)
        assert page.locator(f"[id='{place}']").is_visible() == shown


def test_on_a_phone_pictures_fit_or_say_that_they_scroll(opened):
    page = opened("04_one_head", width=390, has_touch=True, is_mobile=True)
    page.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true; })")
    wide = page.evaluate("""() => [...document.querySelectorAll('figure')].map(figure => {
      const box = figure.querySelector('.scroll'), note = figure.querySelector('.sideways');
      return [box.scrollWidth > box.clientWidth + 1, Boolean(note?.checkVisibility())]; })""")
    assert {tuple(pair) for pair in wide} == {(True, True), (False, False)}
    page = opened("04_one_head")
    assert not any(note.is_visible() for note in page.locator(".sideways").all())


def test_the_data_of_live_pictures_are_small_and_wait_until_one_is_near(opened, folder):
    assert max(file.stat().st_size for file in folder.glob("**/live/*.js")) < 300_000
    page = opened("04_one_head")
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_load_state("networkidle")  # or a picture under way counts as failed
    page.reload()
    page.wait_for_timeout(500)
    assert not any("/live/" in url for url in asked)
    page.locator("[data-live]").scroll_into_view_if_needed()
    page.wait_for_selector("[data-live][data-ready]")
    assert any("/live/" in url for url in asked)


def test_without_javascript_a_page_has_all_but_the_controls(opened):
    page = opened("03_softmax_masking", java_script_enabled=False)
    assert page.locator(".prediction").count() == 4
    summary = page.locator(".prediction summary").first
    summary.click()
    assert page.locator(".prediction details[open] p").first.is_visible()
    assert page.locator(f"{VIEW} table").is_visible()
    assert page.locator("fieldset input").first.is_disabled()
    assert page.locator("text=The controls need JavaScript").is_visible()
    assert page.locator(".katex").count() >= 5
    page.click(".set-up summary")
    assert page.locator(".set-up pre").is_visible()
    page.locator(".term").first.click()
    assert "/glossary.html#" in page.url


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


@pytest.mark.parametrize("sheet", ["cheatsheet", "checklist"])
@pytest.mark.parametrize("paper", ["A4", "Letter"])
def test_each_sheet_prints_on_one_sheet(opened, sheet, paper):
    pdf = opened(sheet).pdf(format=paper)
    assert len(re.findall(rb"/Type */Page\b(?!s)", pdf)) == 1


def test_headings_have_the_anchors_that_jupyterlab_gives_them(chromium, folder):
    soups = parsed(folder)
    headings = [
        tag["id"] for name in NAMES for tag in soups[f"{name}.html"].main.select("h1, h2, h3")
    ]
    all_of_them = nbformat.v4.new_notebook(metadata=notebooks.METADATA)
    for path in notebooks.names():
        cells = nbformat.read(path, as_version=4).cells
        all_of_them.cells += [cell for cell in cells if cell.cell_type == "markdown"]
    for number, cell in enumerate(all_of_them.cells):
        cell.id = str(number)  # two notebooks may have the same
    with browser.lab() as lab:
        nbformat.write(all_of_them, lab.root / "all.ipynb")
        page = chromium.new_page(viewport={"width": 1300, "height": 1000})
        page.goto(f"{lab.url}/lab/tree/all.ipynb?token={browser.TOKEN}&reset")
        selector = ", ".join(f".jp-Notebook .jp-RenderedMarkdown h{i}" for i in (1, 2, 3))
        page.wait_for_function(
            "([selector, n]) => document.querySelectorAll(selector).length >= n",
            arg=[selector, len(headings)], timeout=90_000,
        )  # fmt: skip
        ids = "tags => tags.map(tag => tag.id || tag.dataset.jupyterId)"
        assert page.eval_on_selector_all(selector, ids) == headings
        page.close()


# --- The model on the start page ----------------------------------------------------------------

PROMPTS = ["T", "The cat was warm, so it ", "  * 'x' -> \"y\";\n\n   [0]\n"]
READ = """ids => {
  const gpt = window.gpt ??= new TinyGPT(window.MODEL);
  const logits = [...gpt.read(ids)];
  // (n_layer, T, n_head, up to T)
  return [logits, gpt.cache.map(({weights}) => weights.map(heads => heads.map(row => [...row])))];
}"""


@pytest.fixture(scope="module")
def shipped():
    return shipped_model()


@pytest.fixture
def start(opened):
    """The start page with its model: start(width=360)."""

    def open_start(**settings):
        page = opened("index", **settings)
        page.wait_for_selector(".model[data-ready]")
        return page

    return open_start


def write_letters(page, n):
    """Let the model write at least n letters, then stop it; returns the whole text."""
    length = len(page.input_value("#prompt"))
    page.click("#write")
    page.wait_for_function(
        "n => document.querySelector('#prompt').value.length >= n", arg=length + n
    )
    page.get_by_role("button", name="Stop").click()
    page.get_by_role("button", name="Write on").wait_for()
    return page.input_value("#prompt")


def test_the_model_computes_in_the_page_what_torch_computes(start, shipped):
    model, letters = shipped
    page = start()
    long = "".join(c for c in Corpus(drop_repeats(python_help())).validation if c in letters)
    for text in (*PROMPTS, long[:256], long[:100] + long[300:456], long[:90]):
        ids = encode(text, letters)[None]
        logits, weights = page.evaluate(READ, ids[0].tolist())
        with torch.no_grad():
            expected = model(ids)[0, -1]
        assert torch.tensor(logits) == pytest.approx(expected, abs=1e-4)
        for mine, right in zip(weights, model.attention_weights(ids)[:, 0], strict=True):
            for t, heads in enumerate(mine):
                assert torch.tensor(heads) == pytest.approx(right[:, t, : t + 1], abs=1e-4)


def test_letters_have_the_probabilities_that_python_gives_them(start):
    page = start()
    logits = torch.randn(103, generator=torch.Generator().manual_seed(0)) * 3
    logits[50] = logits[60]  # the first of two equal ones is kept
    place = int((logits > logits[50]).sum()) + 1
    of_page = "a => [...nextLetterProbabilities(new Float32Array(a[0]), a[1], a[2])]"
    for temperature, top_k in ((1.0, 103), (0.1, 103), (2.0, 5), (0.8, 1), (1.0, place)):
        mine = page.evaluate(of_page, [logits.tolist(), temperature, top_k])
        right = next_token_probabilities(logits, temperature, top_k)
        assert mine == pytest.approx(right.tolist(), abs=1e-6)
        assert sum(p > 0 for p in mine) == int((right > 0).sum()) <= top_k
    assert mine[50] > 0 == mine[60]


def test_a_random_number_falls_on_a_letter_as_often_as_its_probability_says(start):
    page = start()
    draw = "random => draw(new Float32Array([0, .25, .5, 0, .25, 0]), random)"
    drawn = [page.evaluate(draw, random) for random in (0, 0.24, 0.26, 0.74, 0.76, 0.9999999)]
    assert drawn == [1, 1, 2, 2, 4, 4]
    assert page.evaluate(draw, 1) == 4  # rounding left a rest


def test_the_bars_show_the_next_letters_and_follow_the_sliders(start, shipped):
    model, letters = shipped
    page = start()
    ids = encode(page.input_value("#prompt"), letters)[None]
    logits = model(ids)[0, -1].detach()

    def shown():
        rows = page.locator(".next button:visible").all_inner_texts()
        return [row.split("\n") for row in rows]

    def expected(temperature, top_k):
        p, order = next_token_probabilities(logits, temperature, top_k).sort(descending=True)
        likely = zip(p[:8].tolist(), order.tolist(), strict=False)
        return [
            [{" ": "space", "\n": "new line"}.get(letters[i], letters[i]), f"{100 * p:.0f} %"]
            for p, i in likely
            if p >= 0.01
        ]

    def compare(temperature, top_k):
        right = expected(temperature, top_k)
        assert shown()[: len(right)] == right
        assert all(percent == "< 1 %" for _, percent in shown()[len(right) :])

    compare(0.8, len(letters))
    temperature, top_k = (page.get_by_role("slider", name=n) for n in ("temperature", "top-k"))
    temperature.focus()
    page.keyboard.press("End")
    assert temperature.get_attribute("aria-valuetext") == "2.0"
    compare(2.0, len(letters))
    top_k.focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowUp")
    assert top_k.get_attribute("aria-valuetext") == "2"
    compare(2.0, 2)
    assert len(shown()) == 2
    temperature.focus()
    page.keyboard.press("Home")
    assert temperature.get_attribute("aria-valuetext") == "0.1"  # 0 cannot be chosen
    compare(0.1, 2)


def test_the_model_writes_until_it_is_stopped_and_what_it_wrote_can_be_taken_back(start, shipped):
    page = start()
    first = page.input_value("#prompt")
    assert page.text_content("#said") == ""
    written = write_letters(page, 20)
    assert written.startswith(first) and set(written) <= set(shipped[1])
    assert page.text_content("#said") == f"The model wrote: {written[len(first) :]}"
    assert page.evaluate("document.activeElement.id") == "write"
    page.wait_for_timeout(200)
    assert page.input_value("#prompt") == written
    page.evaluate("for (const _ of [1, 2, 3]) document.querySelector('#write').click()")
    page.get_by_role("button", name="Write on").wait_for()
    page.wait_for_timeout(200)
    assert page.input_value("#prompt") == written  # the third click did not start it again
    further = write_letters(page, 5)
    assert further.startswith(written)
    page.get_by_role("button", name="Take back").click()
    assert page.input_value("#prompt") == first
    assert page.get_by_role("button", name="Take back").is_hidden()
    assert page.evaluate("document.activeElement.id") == "prompt"


def test_it_ends_by_itself_and_then_has_read_less_than_its_context(start):
    page = start()
    page.fill("#prompt", "The " * 50)
    page.click("#write")
    page.get_by_role("button", name="Write on").wait_for(timeout=60_000)
    assert len(page.input_value("#prompt")) == 500
    # It goes on with the last 192 letters each time when 256 have been read: at 257, 322, 387, 452.
    assert page.inner_text("#unread") == "It reads the last 240 letters of your text."
    assert page.locator(".letters span").count() == 240
    assert axe.violations(page) == []


def test_a_letter_can_be_chosen_by_hand(start):
    page = start()
    page.fill("#prompt", "a is not Non")
    first = page.locator(".next button").first
    assert first.inner_text().startswith("e")
    first.focus()
    page.keyboard.press("Enter")
    assert page.input_value("#prompt") == "a is not None"
    assert page.text_content("#said") == "“e” added."
    assert page.text_content("#weights").startswith("Block 0, head 0: the “e” attends to ")


def test_letters_that_the_model_has_never_seen_stay_in_the_text_and_are_named(start):
    page = start()
    text = "Der Bär 🐻 schläft"
    page.fill("#prompt", text)
    assert page.input_value("#prompt") == text
    said = page.inner_text("#unread")
    assert said == "The model has never seen “ä”, “🐻”, and reads your text without them."
    assert "".join(page.locator(".letters span").all_text_contents()) == "Der Br  schlft"
    assert write_letters(page, 3).startswith(text)
    page.fill("#prompt", "äöüéèê")
    assert "“ä”, “ö”, “ü”, “é”, “è” and others" in page.inner_text("#unread")
    assert "needs at least one letter" in page.inner_text("#unread")
    assert page.locator("#write").is_disabled() and page.locator(".maps").first.is_hidden()
    page.fill("#prompt", "a")
    assert page.inner_text("#unread") == "" and page.locator("#write").is_enabled()


def test_of_a_long_text_the_last_256_letters_are_read(start, shipped):
    model, letters = shipped
    page = start()
    text = "".join(c for c in python_help() if c in letters)[:700]
    page.fill("#prompt", text)
    assert page.inner_text("#unread") == "It reads the last 256 letters of your text."
    likeliest = model(encode(text[-256:], letters)[None])[0, -1].argmax()
    name = page.locator(".next button span").first.inner_text()
    assert name == {" ": "space", "\n": "new line"}.get(letters[likeliest], letters[likeliest])


def test_a_letter_shows_what_each_head_attends_to(start, shipped):
    model, letters = shipped
    page = start()
    text = page.input_value("#prompt")
    weights = model.attention_weights(encode(text, letters)[None])[:, 0].flatten(0, 1)

    def compare(t, head):
        for map, found in zip(page.locator(".maps button").all(), weights[:, t], strict=True):
            s = int(found.argmax())
            name = "space" if text[s] == " " else f"“{text[s]}”"
            assert map.locator(".top").inner_text().startswith(f"{name} {found[s]:.2f}")
        largest = weights[head, t].max()
        sentence = page.inner_text("#weights")
        layer, number = divmod(head, 4)
        assert sentence.startswith(f"Block {layer}, head {number}: the ")
        assert f"{largest:.2f}" in sentence
        assert page.locator(".letters .query").text_content() == text[t]

    compare(len(text) - 1, 0)
    slider = page.get_by_role("slider", name="letter", exact=True)
    slider.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert slider.get_attribute("aria-valuetext") == f"“{text[-3]}”, position {len(text) - 3}"
    compare(len(text) - 3, 0)
    assert page.text_content("#said") == page.inner_text("#weights")
    page.locator(".letters span").nth(5).hover()
    compare(5, 0)
    button = page.get_by_role("button", name="Block 1, head 2")
    button.focus()
    page.keyboard.press("Enter")
    assert button.get_attribute("aria-pressed") == "true"
    compare(5, 6)
    canvas = button.locator("canvas")
    box = canvas.bounding_box()
    canvas.hover(position={"x": 3, "y": box["height"] * 10.5 / len(text)})
    compare(10, 6)
    alpha = """canvas => [...canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height)
      .data].filter((_, i) => i % 4 === 3)"""
    drawn = torch.tensor(canvas.evaluate(alpha)).view(len(text), len(text)) / 255
    assert torch.allclose(drawn, weights[6].sqrt(), atol=1 / 255)


def test_the_maps_take_the_colours_of_the_page(start):
    page = start(color_scheme="light")
    colour = """() => { const canvas = document.querySelector('.map canvas');
      return [...canvas.getContext('2d').getImageData(0, 0, 1, 1).data].join(); }"""
    light = page.evaluate(colour)
    page.get_by_role("button", name="Dark page").click()
    page.wait_for_function(f"before => ({colour})() !== before", arg=light)
    page.get_by_role("button", name="Light page").click()
    page.wait_for_function(f"before => ({colour})() === before", arg=light)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_without_javascript_the_start_page_says_what_the_model_would_do(opened, scheme):
    page = opened("index", java_script_enabled=False, color_scheme=scheme)
    assert page.locator(".model .sample").is_visible()
    assert page.locator("text=With JavaScript, this model would write here").is_visible()
    assert page.locator("#prompt").is_hidden() and page.locator(".maps").first.is_hidden()
