"""The site of two notebooks, with formulas that are not rendered: what needs no browser."""

import base64
import errno
import itertools
import json
import math
import re
import zlib

import matplotlib.image
import nbformat
import numpy as np
import pytest

import explorers
from explorers.sentence import TEXTS
from helpers.gpt import TinyGPT, encode, next_token_probabilities
from helpers.pictures.base import darkened
from helpers.real.study import chances
from helpers.training import about_shipped_model, shipped_model
from lesson import EXERCISES, PREDICTIONS, TERMS
from tests.site_links import dead_links, parsed
from tools import notebooks, npm
from tools.site import __main__ as site
from tools.site import formulas, live, marked, model, pages

BUILT = ("01_bag_of_words", "02_one_matrix")


def pretend_katex(patch):
    """Let every formula become its own text, without KaTeX."""
    patch.setattr(npm, "need", lambda target: None)
    patch.setattr(formulas, "render", lambda formulas: [f"<i>{tex}</i>" for tex, _ in formulas])
    patch.setattr(formulas, "copy_katex", lambda folder: site._write(folder / "katex.css", ""))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("built")
    with pytest.MonkeyPatch.context() as patch:
        pretend_katex(patch)
        site.build([notebooks.SOURCE / f"{name}.ipynb" for name in BUILT], made)
    return made


@pytest.fixture(scope="module")
def soups(folder):
    return parsed(folder)


@pytest.fixture(scope="module", params=BUILT)
def both(request, soups):
    """A notebook and its page."""
    path = notebooks.SOURCE / f"{request.param}.ipynb"
    return nbformat.read(path, as_version=4), soups[f"{request.param}.html"]


def test_an_error_is_told_without_the_colours_of_a_terminal():
    output = nbformat.v4.new_output("error", traceback=["\x1b[0;31mOops\x1b[0m: no", "  line 2"])
    assert pages._traceback(output) == "Oops: no\n  line 2"


def test_what_a_phone_folds_of_an_optional_part_ends_at_the_next_section(soups):
    heading = soups["02_one_matrix.html"].find(id="Optional:-weights-that-decay")
    box = heading.find_parent(class_="cell").find_next_sibling()
    assert box.name == "details" and box["class"] == ["long"] and box.has_attr("open")
    assert [part["aria-label"][:13] for part in box("section")] == [
        "Exercise 02.3",
        "Prediction 02",
    ]
    assert box.find_next_sibling(class_="cell").h2["id"] == "Break-it"


def sources(nb, kind):
    return [cell.source for cell in nb.cells if cell.cell_type == kind]


def test_every_link_and_anchor_leads_somewhere(folder):
    assert dead_links(folder) == []


def test_a_dead_link_would_be_found(tmp_path):
    for name, text in (("a.html", '<a href="b.html#x">'), ("b.html", '<img src="c.png">')):
        (tmp_path / name).write_text(text)
    (tmp_path / "a.css").write_text("src: url(d.woff2)")
    assert set(dead_links(tmp_path)) == {"a.html: b.html#x", "b.html: c.png", "a.css: d.woff2"}


def test_headings_have_the_anchors_of_jupyterlab_and_stand_in_order(both):
    nb, page = both
    text = "\n".join(sources(nb, "markdown"))
    headings = re.findall(r"^(#{1,3}) ([^\n`$]+)$", text, re.MULTILINE)
    assert [("h1", "h2", "h3")[len(level) - 1] for level, _ in headings] == [
        tag.name for tag in page.main.find_all(["h1", "h2", "h3", "h4", "h5", "h6"])
    ]
    assert [tag["id"] for tag in page.main.find_all(["h1", "h2", "h3"])] == [
        title.replace(" ", "-") for _, title in headings
    ]
    levels = [len(level) for level, _ in headings]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))
    anchors = [f"#{title.replace(' ', '-')}" for _, title in headings[1:]]
    assert [link["href"] for link in page.select(".contents a")] == anchors


def test_a_figure_has_its_own_alt_text_its_png_and_its_words(both, folder):
    nb, page = both
    outputs = [o for cell in nb.cells for o in cell.get("outputs", []) if "data" in o]
    stored = [o for o in outputs if "image/png" in o.data]
    figures = page.find_all("figure")
    assert len(figures) == len(stored) > 3
    for figure, output in zip(figures, stored, strict=True):
        assert figure.img["alt"] == output.metadata["image/png"]["alt"]
        png = base64.b64decode(output.data["image/png"])
        light, dark = ((folder / image["src"]).read_bytes() for image in figure.find_all("img"))
        assert (light, dark) == (png, darkened(png))
        assert figure.pre.text == output.data["text/plain"]


def test_code_and_its_output_are_there(both):
    nb, page = both
    shown = "\n".join(tag.text for tag in page.select("pre"))
    for cell in nb.cells:
        if cell.cell_type == "code" and not pages.NO_CODE.match(cell.source):
            assert cell.source in shown
            if "check(" not in cell.source:
                assert all(o.text in shown for o in cell.outputs if o.output_type == "stream")


def test_the_set_up_is_folded_and_can_be_read(both):
    nb, page = both
    first = next(cell for cell in nb.cells if cell.cell_type == "code")
    (fold,) = page.select(".set-up")
    assert fold.summary.text == "Set-up: what this notebook imports" and not fold.has_attr("open")
    assert fold.pre.text.strip() == first.source
    assert fold.parent == page.select_one(".cell:not(.text)")


def test_the_notebook_file_can_be_had(folder, soups):
    for name in BUILT:
        link = soups[f"{name}.html"].select_one(".banner a[download]")
        assert link["href"] == f"notebooks/{name}.ipynb"
        stored = (notebooks.SOURCE / f"{name}.ipynb").read_bytes()
        assert (folder / link["href"]).read_bytes() == stored


def test_a_wide_picture_says_on_a_phone_that_it_scrolls(both):
    for figure in both[1].find_all("figure"):
        wide = int(figure.img["width"]) > 560
        assert bool(figure.select(".sideways")) == wide


def test_only_pages_with_formulas_load_their_style(soups):
    loads = {name for name, page in soups.items() if page.select('link[href*="katex"]')}
    assert loads == {"02_one_matrix.html"}  # there is none in 01, nor in the other pages


def test_a_prediction_explains_each_choice_without_javascript(both):
    nb, page = both
    asked = [PREDICTIONS[id] for id in pages.PREDICT.findall("\n".join(sources(nb, "code")))]
    boxes = page.select(".prediction")
    assert len(boxes) == len(asked) >= 3
    for box, prediction in zip(boxes, asked, strict=True):
        assert prediction.id in box["aria-label"]
        choices = box.find_all("details")
        assert len(choices) == len(prediction.choices)
        for (letter, choice), details in zip(prediction.choices.items(), choices, strict=True):
            assert details.summary.text == f"{letter}) {choice.text.replace('`', '')}"
            right = letter == prediction.answer
            assert ("✓ Right." in details.p.text) == right != ("✗ Not this one." in details.p.text)
            assert choice.explanation.replace("`", "") in details.p.text


def test_an_exercise_has_its_hints_and_its_command_and_no_solution(both):
    nb, page = both
    set_ = [EXERCISES[id] for id in pages.CHECK.findall("\n".join(sources(nb, "code")))]
    boxes = page.select(".exercise")
    assert len(boxes) == len(set_) > 1
    for box, exercise in zip(boxes, set_, strict=True):
        hints = [details.p.text for details in box.find_all("details")]
        assert hints == [hint.replace("`", "") for hint in exercise.hints]
        assert "make lab" in box.text
        assert "raise NotImplementedError" in box.find_previous_sibling("details").pre.text


def test_formulas_are_put_in(folder, soups):
    text = (folder / "02_one_matrix.html").read_text("utf-8")
    assert r"<i>v \cdot w = v_0 w_0 + v_1 w_1 + \dots + v_{n-1} w_{n-1}</i>" in text
    written = [path for path in folder.glob("*.*") if path.suffix != ".png"]
    assert not any("\ue000" in path.read_text("utf-8") for path in written)
    assert "<!--" not in text


def test_a_term_of_the_glossary_leads_to_the_bold_word(soups):
    links = {
        div.dt.text.partition(" (")[0]: div.a for div in soups["glossary.html"].select("dl div")
    }
    assert list(links) == sorted(TERMS, key=str.lower)
    there = [term for term in TERMS.values() if f"{term.notebook}" in ("01", "02")]
    for term in there:
        file, _, mark = links[term.name]["href"].partition("#")
        bold = soups[file].find(id=mark)
        assert bold.name == "strong" and bold.text.lower().startswith(term.name.lower())
    assert sum(link is not None for link in links.values()) == len(there)


def test_each_mark_of_a_term_leads_to_its_meaning_once_a_section(soups):
    for name in BUILT:
        page = soups[f"{name}.html"]
        known, met = {t.name for t in TERMS.values() if t.notebook < name[:2]}, set()
        for tag in page.main.select("h2, .term"):
            if tag.name == "h2":
                met = set()
                continue
            meaning = page.find(id=tag["aria-describedby"]).text
            term = TERMS[re.match(r"(.*?)(?: \(also: .*?\))?: ", meaning)[1]]
            assert meaning.endswith(f": {term.meaning}")
            assert tag["href"] == f"glossary.html#{marked.anchor(term.name)}"
            assert soups["glossary.html"].find(id=marked.anchor(term.name))
            assert tag.text.lower().startswith(tuple(n.lower() for n in (term.name, *term.also)))
            if tag.parent.get("id") == marked.defined(term):
                known.add(term.name)  # from here on
            else:
                assert not term.everyday and term.name not in met
            assert term.name in known
            met.add(term.name)
        here = {t.name for t in TERMS.values() if t.notebook == name[:2]}
        assert len(page.select("strong > .term")) == len(here) >= 5


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Two tokens, and a token.", ["tokens"]),
        ("`token` and a [token](x.md), *Token* in a title.", []),
        ("A key of everyday life.", []),
        ("The dot products of $q$ tokens", ["dot products", "tokens"]),
        ("**softmax** of a pre-token", ["softmax"]),
        ("Large language models and LLMs", ["Large language models"]),
        ("| a table | token |\n|-|-|\n| token | x |", []),
        ("- token\n\n  - token\n- softmax", ["token", "softmax"]),
        ("token\n\n## Next\n\ntoken and token", ["token", "token"]),
        ("The output projection comes in 06.", []),
        ("A token index, and causal masks", ["token index", "causal masks"]),
    ],
)
def test_what_counts_as_a_term_in_a_text(text, expected):
    texts = ("# A question about tokens", text)
    cells = [nbformat.v4.new_markdown_cell(source) for source in texts]
    page = pages.Maker([]).page("05_x", nbformat.v4.new_notebook(cells=cells))
    assert re.findall(r'<a aria-describedby=[^>]*class="term"[^>]*>([^<]*)<', page.body) == expected


def test_a_search_has_every_heading_with_the_text_below_it(folder, soups):
    script = (folder / "search.js").read_text("utf-8")
    found = json.loads(script.removeprefix("window.SECTIONS = ").removesuffix(";\n"))
    for name in BUILT:
        page = soups[f"{name}.html"]
        headings = [tag["id"] for tag in page.main.find_all(["h1", "h2", "h3"])]
        assert [s["anchor"] for s in found if s["file"] == f"{name}.html"] == headings
    one = next(s for s in found if s["heading"] == "An average is a row times the tokens")
    assert one["text"].startswith(
        " Multiply two lists entry by entry and add the products: the result is their dot product "
        "(also called inner product). v · w = v_0 w_0 + v_1 w_1 + … + v_n-1 w_n-1 If one list"
    )
    assert "guessed_next(wanted @ pair, TEXTS," in one["text"]
    terms = {s["anchor"]: s["text"] for s in found if s["file"] == "glossary.html"}
    assert len(terms) == len(TERMS) and all(soups["glossary.html"].find(id=t) for t in terms)
    assert terms["dot-product"].startswith("Also: inner product. ")
    assert terms["token"] == TERMS["token"].meaning


def test_the_start_page_names_each_notebook_with_question_and_minutes(soups):
    cards = soups["index.html"].select(".cards li")
    assert [card.a["href"] for card in cards] == [f"{name}.html" for name in BUILT]
    assert cards[1].text.split("\n")[1] == "02 Can one matmul replace the loop?"
    assert cards[1].p.text.startswith("An average is a sum of products with weights, so a matrix")
    assert cards[1].select_one(".note").text == "50 minutes, with a live picture"
    assert "make lab" in soups["index.html"].text


def test_the_start_page_has_the_chances_that_a_real_model_gives(soups):
    page = soups["index.html"]
    radios = page.select(".nouns [type=radio]")
    assert [radio.has_attr("checked") for radio in radios] == [True, False, False]
    for blind, radio in zip((0, 16, 270), radios, strict=True):
        for noun, table in zip(("cat", "soup"), page.select(f".{radio['id']} table"), strict=True):
            text = f"the {noun} was warm so it"
            rows = {row.th.text: row.td.text for row in table.select("tr[style]")}
            percent = chances(text, list(rows), blind).tolist()
            assert table.caption.text == text and len(rows) == 6
            assert [*rows.values()] == [f"{p:.1f} %" for p in percent]
    said = [page.select_one(f".{radio['id']} > p").text for radio in radios]
    assert [text.split()[3] for text in said] == ["slept", "melted", "melted"]


def test_a_link_to_the_site_has_a_description_and_with_its_address_a_picture(
    tmp_path, folder, pretended
):
    site.build([], tmp_path, "https://example.org/course/")
    here = {
        tag.get("property", tag.get("name")): tag["content"]
        for tag in parsed(tmp_path)["index.html"].select("meta[content]")
    }
    assert here["description"] == here["og:description"] == site.ABOUT
    assert here["og:image"] == "https://example.org/course/preview.png"
    assert "the cat was warm so it: ran 2.7 %" in here["og:image:alt"]
    assert "og:image" not in (folder / "index.html").read_text("utf-8")  # it has no address
    assert matplotlib.image.imread(folder / "preview.png").shape[:2] == (630, 1200)


# --- The model on the start page ----------------------------------------------------------------


def test_the_page_has_the_shipped_model_in_float16(folder):
    script = (folder / "model-weights.js").read_text("utf-8")
    assert len(script) <= 320_000
    data = json.loads(script.removeprefix("window.MODEL = ").removesuffix(";\n"))
    gpt, letters = shipped_model()
    assert (data["letters"], data["config"]) == (letters, gpt.config)
    halves = np.frombuffer(base64.b64decode(data["weights"]), dtype="<f2")
    for name, shape in data["shapes"].items():
        here, halves = np.split(halves, [math.prod(shape)])
        assert np.array_equal(here.reshape(shape), gpt.get_parameter(name).detach().numpy())
    assert not len(halves) and len(data["shapes"]) == len(list(gpt.parameters()))


def test_the_start_page_says_how_long_the_model_was_trained_and_where_to_build_it(soups):
    said = soups["index.html"].select_one("#writes + p")
    assert f"trained in {about_shipped_model()['seconds']:.0f} seconds" in said.text
    assert said.a["href"] == "01_bag_of_words.html"  # there is no 10 here


def test_without_javascript_the_start_page_has_a_text_that_the_model_wrote(soups):
    said = soups["index.html"].select_one(".model .no-script .sample")
    assert said.b.text == model.PROMPT and len(said.text) == len(model.PROMPT) + 200
    assert said.text == model.PROMPT + model.shipped().written  # each time the same
    assert set(said.text) <= set(shipped_model()[1])


def test_the_start_page_has_the_next_letters_before_any_script_runs(soups):
    rows = soups["index.html"].select(".next button")
    shown = model.shipped()
    gpt, letters = shipped_model()
    logits = gpt(encode(model.PROMPT, letters)[None])[0, -1]
    p = next_token_probabilities(logits, 0.8)
    order = p.argsort(descending=True)[:8].tolist()
    names = [model.NAMES.get(letters[i], letters[i]) for i in order]
    assert [row.span.text for row in rows] == names
    assert [row.select("span")[1].text for row in rows] == [model.in_percent(p[i]) for i in order]
    others = len(letters) - 8
    assert shown.others.startswith(f"{others} other letters: ")
    assert soups["index.html"].find(id="others").text == shown.others


def unpack(script):
    """What live.js makes of a script: the tree of settings and all states."""
    packed = base64.b64decode(re.search(r'"(.*)"', script)[1])
    data = json.loads(zlib.decompress(packed))
    states = []
    for number, *values in data["states"]:
        first, *rest = data["templates"][number]
        parts = [value + text for value, text in zip(values, rest, strict=True)]
        states.append(tuple((first + "".join(parts)).split("\0")))
    return data["tree"], states


@pytest.mark.parametrize("number", ["00", pytest.param("03", marks=pytest.mark.slow)])
def test_every_stored_state_is_what_python_draws_and_says(number):
    path = next(path for path in notebooks.names() if path.name.startswith(number))
    nb = nbformat.read(path, as_version=4)
    ((call, explorer),) = live.explorers_of(nb).items()
    shown = live.Live(call, explorer)
    first = live.state(explorer)
    tree, states = unpack(shown.script)
    assert live.state(explorer) == first == (shown.html, shown.words)

    def compare(branch, names):
        if not names:
            assert states[branch] == live.state(explorer)
            return 1
        count = 0
        for value, deeper in zip(shown.values[names[0]], branch, strict=True):
            explorer.controls[names[0]].value = value
            count += compare(deeper, names[1:])
        return count

    assert compare(tree, list(shown.values)) == len(states) == {"00": 18, "03": 2916}[number]


def test_a_box_to_write_in_is_left_out_and_the_page_says_so():
    explorer = explorers.explore_sampling(TinyGPT(3, 4, C=4, n_head=1), "abc", "ab")
    shown = live.Live("explore_sampling(model, letters, prompt)", explorer)
    assert [control["name"] for control in shown.controls] == ["temperature", "top-k"]
    tree, states = unpack(shown.script)
    assert len(states) == 20 * 4 and states[tree[9][3]] == (shown.html, shown.words)
    assert "prompt" in shown.note and "prompt" not in shown.about


def test_a_box_with_texts_to_choose_is_a_list_of_them():
    """What the published model says to them is stored."""
    shown = live.Live("explore_sentence()", explorers.explore_sentence())
    (control,) = shown.controls
    assert (control["kind"], control["options"], control["at"]) == ("select", [*TEXTS], 0)
    _, states = unpack(shown.script)
    assert [words.split("”")[0] for _, words in states] == [f"“{text}" for text in TEXTS]
    assert "write" in shown.note and "write" not in shown.about


@pytest.mark.parametrize(
    ("call", "states"),
    [
        ('explore_painter("abcab", rule="earlier same letter")', 600),
        ("explore_query([1, 0], plane, plane, plane)", 361 * 9 * 2),
        ("explore_softmax()", 2916),
        ("explore_ward()", 8 * 14 * 13),
        ("explore_weights(plane)", 8),
    ],
)
def test_an_explorer_can_have_every_value_that_its_page_offers(call, states):
    explorer = eval(call, vars(explorers) | {"plane": [[1.0, 0.0], [0.0, 1.0]]})
    shown = live.Live(call, explorer)
    assert math.prod(map(len, shown.values.values())) == states
    assert "On this page" in shown.note
    for key, values in shown.values.items():
        control = explorer.controls[key]
        assert control.value in values
        for value in values:
            control.value = value
            assert control.value == value, key


def test_a_page_with_two_explorers_has_each_in_its_place():
    calls = ["explore_cache()", "explore_online_softmax()"]
    imports = "from explorers import explore_cache, explore_online_softmax"
    cells = [nbformat.v4.new_code_cell(source) for source in (imports, *calls)]
    first = nbformat.v4.new_markdown_cell("# A question\n\n5 minutes")
    page = pages.Maker([]).page("14_two", nbformat.v4.new_notebook(cells=[first, *cells]))
    assert list(page.live) == calls
    found = re.findall(
        r'data-live="(\w+)".*?<div class="view[^>]*>(.*?)</div>\n<p', page.body, re.S
    )
    assert found == [(shown.name, shown.html) for shown in page.live.values()]
    for shown, n in zip(page.live.values(), (60, 32), strict=True):
        assert shown.script.startswith(f"(window.LIVE ??= {{}}).{shown.name} = ")
        assert len(unpack(shown.script)[1]) == n and len(shown.script) < 20_000


def test_states_with_other_words_between_their_numbers_are_kept_apart():
    states = ["a 1 b 2", "a 1 b 3", "c", "a 1.5 b 2.", ""]
    packed = live.packed(states)
    assert packed["states"][2] == [1] and len(packed["templates"]) == 3
    assert packed["templates"][0] == ["a ", " b ", ""]


@pytest.mark.parametrize(
    ("tex", "words"),
    [
        (r"e^{-\infty} = 0", "e^-∞ = 0"),
        (
            r"\text{softmax}\left(\frac{Q K^\top}{\sqrt{d_k}}\right) V",
            "softmax((Q K^ᵀ) / (√d_k)) V",
        ),
        (r"\frac{e^{\text{score}_s}}{Z}", "(e^score_s) / (Z)"),
    ],
)
def test_a_search_shows_formulas_without_commands(tex, words):
    assert pages.in_words(tex) == words


# --- Faults -----------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with one small notebook, an older site, and no packages of npm."""
    monkeypatch.setattr(notebooks, "ROOT", tmp_path)
    monkeypatch.setattr(notebooks, "SOURCE", tmp_path / "notebooks")
    monkeypatch.setattr(site, "SITE", tmp_path / "site")
    monkeypatch.setattr(npm, "PACKAGES", tmp_path / "npm/node_modules")
    (tmp_path / "notebooks").mkdir()
    write_notebook(tmp_path)
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / site.MARK).write_text("old")
    return tmp_path


@pytest.fixture
def pretended(monkeypatch):
    pretend_katex(monkeypatch)
    monkeypatch.setattr(model.Shown, "written", "a text")


def write_notebook(project, *code):
    cells = [nbformat.v4.new_markdown_cell("# Why?\n\n$x$"), *map(nbformat.v4.new_code_cell, code)]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), project / "notebooks/01_bag.ipynb")


def untouched(project):
    """Whether the older site is as it was, with nothing half-written beside it."""
    old = [path.name for path in (project / "site").iterdir()]
    return old == [site.MARK] and not (project / "build/site").exists()


def test_a_new_site_takes_the_place_of_the_old_one(project, pretended):
    (project / "site/leftover.html").write_text("old")
    there = project / "notebooks"
    (there / "10_gpt.ipynb").write_bytes((there / "01_bag.ipynb").read_bytes())
    site.main()
    start = parsed(project / "site")["index.html"]
    assert start.select_one("#writes + p a")["href"] == "10_gpt.html"  # where its model is built
    assert (project / "site/01_bag.html").exists() and (project / "site" / site.MARK).exists()
    assert not (project / "site/leftover.html").exists()
    assert list((project / "build").iterdir()) == []


def test_the_first_site_needs_no_old_one(project, pretended):
    (project / "site" / site.MARK).unlink()  # an empty folder
    site.main()
    for path in sorted((project / "site").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (project / "site").rmdir()
    site.main()
    assert (project / "site/index.html").exists()


def test_a_folder_that_holds_other_files_stays(project, pretended, refused):
    (project / "site" / site.MARK).rename(project / "site/mine.txt")
    said = refused(site.main)
    assert said.startswith("site holds files that make site did not write: move it away")
    assert [path.name for path in (project / "site").iterdir()] == ["mine.txt"]


def test_a_file_in_the_place_of_the_folder_stays(project, pretended, refused):
    (project / "site" / site.MARK).unlink()
    (project / "site").rmdir()
    (project / "site").write_text("mine")
    assert refused(site.main).startswith("site is not a folder: move it away")
    assert (project / "site").read_text() == "mine"


@pytest.mark.parametrize(
    ("number", "told", "name"),
    [
        (errno.ENOSPC, "the disk is full", "01_bag.html"),
        (errno.EACCES, "no right", "search.js"),
        (errno.EROFS, "read-only", site.MARK),
    ],
)
def test_a_site_that_cannot_be_written_is_told_and_the_old_one_stays(
    project, pretended, disk, refused, number, told, name
):
    disk(number, name)
    said = refused(site.main)
    assert said.startswith("site cannot be written, because") and told in said
    assert untouched(project)


def test_a_notebook_that_cannot_be_read_is_told(project, pretended, refused):
    (project / "notebooks/01_bag.ipynb").write_text("{")
    said = refused(site.main)
    assert said.startswith("notebooks/01_bag.ipynb is damaged (line 1 is no JSON): clone")
    assert untouched(project)


def test_a_cell_above_an_explorer_that_fails_is_told(project, pretended, refused):
    write_notebook(project, "x = 1", "y = 1 / 0", "explore_prefix(x)")
    said = refused(site.main)
    assert "01_bag" in said and "`y = 1 / 0` raised ZeroDivisionError" in said
    assert untouched(project)


def test_what_make_installs_is_asked_for_where_it_is_missing(project, refused):
    assert "run make site" in refused(site.main)
    assert untouched(project)


def test_a_formula_that_is_not_valid_is_told(project, monkeypatch, refused):
    node = project / "bin/node"
    node.parent.mkdir()
    node.write_text("#!/bin/sh\n" + r"echo '\frac{1: ParseError: Expected }' >&2; exit 1" + "\n")
    node.chmod(0o755)
    monkeypatch.setenv("PATH", str(node.parent))
    monkeypatch.setattr(npm, "need", lambda target: None)
    said = refused(site.main)
    assert said.startswith("A formula cannot be rendered") and "ParseError" in said
    assert untouched(project)
