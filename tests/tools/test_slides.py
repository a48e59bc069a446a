"""Slides: what a page of them holds, and the sentences where none can be made or opened."""

import errno
import re
from html import unescape

import nbformat
import pytest
from nbformat import v4

from helpers.lesson.exercises import PREDICTIONS
from tools import notebooks, npm
from tools.slides import live, static

PNG = "iVBORw0KGgo="


def markdown(text, kind):
    return v4.new_markdown_cell(text, metadata={"slideshow": {"slide_type": kind}})


def code(source, kind="subslide", *outputs):
    metadata = {"slideshow": {"slide_type": kind}}
    return v4.new_code_cell(source, metadata=metadata, outputs=list(outputs))


def picture(height=100, kind="Heatmap"):
    metadata = {"image/png": {"alt": 'A "cat" & a dog.', "width": 300, "height": height}}
    data = {"image/png": PNG, "text/plain": f"{kind}: Weights\nrow 0  1.00"}
    return v4.new_output("display_data", data, metadata=metadata)


def result(text, **data):
    data = {kind.replace("__", "/"): value for kind, value in data.items()}
    return v4.new_output("execute_result", {"text/plain": text} | data)


def page(*cells):
    return static.html(v4.new_notebook(cells=[markdown("# Why?", "slide"), *cells]))


def slides(text):
    """The slides of a page: what stands between the openings of two innermost sections."""
    return re.split(r"<section[^>]*>", text.split('<div class="slides">')[1])[1:]


def test_a_page_loads_only_what_lies_beside_it():
    text = page(markdown("Look at [this](https://example.org) and $x$.", "subslide"))
    loaded = re.findall(r'(?:src|<link[^>]*href)="([^"]*)"', text)
    assert sorted(loaded) == sorted(f"assets/{name}" for name in static.ASSETS)
    assert not re.search(r"@import|url\((?!data:)|import\(|require\(", text.split("</head>")[0])


def test_notes_are_for_the_speaker_and_skipped_cells_are_gone():
    text = page(markdown("Say this.", "notes"), code("import torch", "skip"), code("x = 1"))
    assert re.search(r'<aside class="notes">(?:(?!</aside>).)*Say this', text, re.DOTALL)
    assert "torch" not in text and "Why?" in text


def test_a_picture_keeps_its_alt_text_and_grows_until_its_numbers_can_be_read():
    for height, kind in [(100, "Heatmap"), (480, "Heatmap"), (500, "Curves")]:
        text = page(code("draw()", "subslide", picture(height, kind)))
        assert unescape(re.search(r"alt=(['\"])(.*?)\1 ", text)[2]) == 'A "cat" & a dog.'
        width = int(re.search(r"<img [^>]*width: (\d+)px", text)[1])
        assert width / 300 >= (1.4 if kind == "Heatmap" else 14 / 11)
        assert width / 300 * height <= static.HIGH + 1  # rounded
    assert "draw()" not in text, "the call alone says nothing"


def test_outputs_that_have_no_room_below_their_code_stand_on_the_next_slide():
    lines = "\n".join(f"x = {k}" for k in range(12))
    short, long = (
        page(code("x = 1\ny = 2", "subslide", picture())),
        page(code(lines, "subslide", result("told"), picture(400))),
    )
    assert len(slides(short)) == 3 and len(slides(long)) == 4
    assert "told" in slides(long)[2] and "<img" in slides(long)[3]


def test_a_picture_leaves_room_for_the_sentence_below_it():
    def width(*below):
        text = page(code("draw()", "subslide", picture(400)), *below)
        return int(re.search(r"<img [^>]*width: (\d+)px", text)[1])

    sentence = markdown("Each row sums to 1.", "fragment")
    assert width(sentence) < width()
    assert width(markdown("Say this.", "notes"), sentence) == width(sentence)


@pytest.mark.parametrize("id", PREDICTIONS)
def test_a_prediction_shows_its_choices_and_not_its_answer(id):
    text = static.question(PREDICTIONS[id])
    for choice in PREDICTIONS[id].choices.values():
        assert choice.explanation[:30] not in text
    assert text.count("<li>") == len(PREDICTIONS[id].choices)


def test_a_prediction_and_an_explorer_are_shown_as_html():
    live_output = result("Live: move t.\nControls: t.\nNow: t = 3", text__html="<b>drawn</b>")
    text = page(
        code('predict("03.p1")', "subslide", result("Prediction 03.p1\nYou may give")),
        code("explore_softmax()", "subslide", live_output),
    )
    asked, drawn = slides(text)[-2:]
    assert "with no such row" in asked and "Answer with a button" not in asked
    assert "<b>drawn</b>" in drawn and "Live in the notebook: move t." in drawn
    assert "predict(" not in text and "explore_softmax" not in text


EXPLORES = """from helpers.explorers import explore_softmax
_ = 1"""


@pytest.mark.slow  # a kernel
def test_an_explorer_is_drawn_in_its_first_state(tmp_path):
    path = tmp_path / "03_tiny.ipynb"
    shown = result("Live: move five scores.")
    nbformat.write(
        v4.new_notebook(cells=[code(EXPLORES), code("explore_softmax()", "slide", shown)]), path
    )
    html = static.with_pictures(path).cells[1].outputs[0].data["text/html"]
    assert "0.94" in html and "attention-explorer" in html


# ---------------------------------------------------------------- faults


@pytest.fixture
def packages(folder, tmp_path, monkeypatch):
    """The small project, with files in the places of those from npm."""
    monkeypatch.setattr(static, "FOLDER", tmp_path / "slides")
    monkeypatch.setattr(npm, "PACKAGES", tmp_path / "npm" / "node_modules")
    for source in static.ASSETS.values():
        (npm.PACKAGES / source).parent.mkdir(parents=True, exist_ok=True)
        (npm.PACKAGES / source).write_text("script")
    (npm.PACKAGES.parent / "ready").touch()
    for path in notebooks.names():
        nb = nbformat.read(path, as_version=4)
        for cell in nb.cells:
            cell.metadata["slideshow"] = {"slide_type": "slide"}
        nbformat.write(nb, path)
    return tmp_path


def written(root):
    folder = root / "slides"
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}


def test_all_notebooks_are_written_or_the_one_that_is_named(packages, capsys):
    static.main("01")
    assets = {f"assets/{name}" for name in static.ASSETS}
    assert written(packages) == assets | {"01_bag.html"}
    assert capsys.readouterr().out == "slides/01_bag.html\n"
    static.main("")
    assert len(written(packages)) == len(assets) + 3


def test_an_unknown_notebook_is_told_with_the_list(packages):
    for run in (static.main, live.main):
        with pytest.raises(SystemExit, match=r"no notebook 31: .* NB=03 from 00_start, 01_bag"):
            run("31")
    assert written(packages) == set()


def test_what_make_installs_is_asked_for_where_it_is_missing(packages, monkeypatch, refused):
    (npm.PACKAGES.parent / "ready").unlink()
    assert "run make slides-html" in refused(static.main, "01")
    monkeypatch.setattr(live, "find_spec", lambda name: None)
    assert "run make slides" in refused(live.main, "01")


def test_a_damaged_notebook_leaves_no_page(packages, refused):
    (packages / "notebooks" / "01_bag.ipynb").write_text("{")
    assert "notebooks/01_bag.ipynb is damaged" in refused(static.main, "01")
    assert written(packages) == set()


def test_a_full_disk_leaves_no_half_page(packages, disk, refused):
    disk(errno.ENOSPC, "01_bag.part")
    said = refused(static.main, "01")
    assert "slides/01_bag.html cannot be written, because the disk is full" in said
    assert not [name for name in written(packages) if "01_bag" in name]


def test_a_folder_that_takes_no_files_is_told(packages, refused):
    (packages / "slides").write_text("mine")
    assert "slides has to be a folder" in refused(static.main, "01")
    assert (packages / "slides").read_text() == "mine"


def test_live_slides_need_to_know_which_notebook(packages, refused):
    assert refused(live.main, "").startswith("Say which notebook: make slides NB=03, from 00_start")


def test_live_slides_open_the_copy_and_hand_on_arguments(packages, monkeypatch, capsys):
    opened = []
    monkeypatch.setattr(live, "find_spec", lambda name: True)
    monkeypatch.setattr(live, "become_jupyterlab", lambda *given: opened.append(given))
    monkeypatch.setattr(live.sys, "argv", ["live", "01", "--port", "8899"])
    live.main("01")
    assert opened == [("01_bag.ipynb", live.SETTINGS)]
    assert live.sys.argv == ["live", "--port", "8899"]
    assert (packages / "work" / "01_bag.ipynb").exists()
    assert "JupyterLab opens work/01_bag.ipynb" in capsys.readouterr().out
