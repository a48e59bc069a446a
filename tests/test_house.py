"""The project's own files agree with each other."""

import ast
import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from packaging.version import Version

from attention_base.same import same_conditions
from tests import plugin
from tools import notebooks
from tools.lint_notebooks import Book

ROOT = notebooks.ROOT
PIN = re.compile(r"([A-Za-z0-9_.-]+)==\d+(\.\d+)+")


def requirements():
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


def pyproject():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_requirements_are_exact_and_say_who_needs_them():
    for line in requirements():
        pin, _, why = line.partition("#")
        assert PIN.fullmatch(pin.strip()), line
        assert why.strip(), line
    assert requirements()[0].startswith("torch==2.13.0 ")


def test_what_teaches_runs_and_decides_outputs_is_pinned():
    named = {PIN.match(line)[1] for line in requirements()}
    assert named >= {"torch", "jupyterlab", "matplotlib", "ipywidgets", "nbval", "pytest"}
    assert named >= {"numpy", "ipython", "ipykernel", "nbconvert", "nbformat"}


BROUGHT = {"IPython": "ipython", "PIL": "matplotlib", "traitlets": "ipywidgets"}  # by these


def test_the_exact_list_is_one_of_those_that_the_package_allows():
    """And the package asks for all that it imports, for a kernel, and for where learners work."""
    ranges = dict(text.split(">=") for text in pyproject()["project"]["dependencies"])
    pins = dict(line.split()[0].split("==") for line in requirements())
    for name, oldest in ranges.items():
        assert Version(oldest) < Version(pins[name]), name
    ours = {*notebooks.ROOMS, *sys.stdlib_module_names}
    imported = {
        (node.module if isinstance(node, ast.ImportFrom) else node.names[0].name).split(".")[0]
        for room in notebooks.ROOMS
        for path in (ROOT / room).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    needed = {BROUGHT.get(name, name) for name in imported - ours}
    assert needed | {"ipykernel", "jupyterlab"} == ranges.keys()


def test_dev_tools_are_exact():
    extras = pyproject()["project"]["optional-dependencies"]
    *dev, slides_too = extras["dev"]
    assert slides_too == "attention-from-a-for-loop[slides]"
    assert {PIN.fullmatch(line)[1] for line in [*dev, *extras["slides"]]} == {
        "ruff",
        "codespell",
        "import-linter",
        "playwright",
        "gguf",
        "tokenizers",
        "mutmut",
        "coverage",
        "libcst",
        "jupyterlab-slideshow",
    }


@pytest.mark.parametrize("name", ["clinic", "explorers", "lesson"])
def test_an_old_copy_of_a_notebook_is_told_what_to_do(name):
    with pytest.raises(ImportError, match=r"`make fresh NB=03`.*keeps this copy.*in work/old/"):
        importlib.import_module(f"helpers.{name}")


OF_HELPERS = [
    f"helpers.{name}" for name in ("attention", "circuits", "pictures", "real", "training")
]
GIVING = [  # the packages that hand out names of the files in them
    importlib.import_module(name)
    for name in ("attention_clinic", "explorers", "lesson", *OF_HELPERS)
]


@pytest.mark.parametrize("package", GIVING, ids=lambda package: package.__name__)
def test_no_file_bears_the_name_of_what_its_package_gives_out(package):
    """Otherwise ``from helpers.pictures import heatmap`` could hand out the module."""
    files = {module.name for module in pkgutil.iter_modules(package.__path__)}
    assert package.__doc__ and package.__all__
    assert not files & set(package.__all__)
    assert all(hasattr(package, name) for name in package.__all__)


@pytest.mark.parametrize("room", notebooks.ROOMS)
def test_the_tests_of_a_room_stand_in_a_folder_of_its_name(room):
    tested = sorted((ROOT / "tests" / room).rglob("test_*.py"))
    assert tested, f"tests/{room} holds no tests"
    for path in tested:
        name = path.stem.removeprefix("test_")
        there = ROOT / path.parent.relative_to(ROOT / "tests")
        of_a_file = there.exists()  # other folders hold tests of another kind
        assert not of_a_file or (there / name).exists() or (there / f"{name}.py").exists(), path


WITH_EXAMPLES = [
    path
    for room in notebooks.ROOMS
    for path in sorted((ROOT / room).rglob("*.py"))
    if ">>> " in path.read_text("utf-8")
]


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: str(path.relative_to(ROOT)))
def test_examples_in_docstrings_are_true(path):
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted and not result.failed


ROOMS = [*notebooks.ROOMS, "tests", "tools"]


@pytest.mark.parametrize("room", ROOMS)
def test_the_readme_of_a_room_is_short_and_its_examples_are_true(room):
    path = ROOT / room / "README.md"
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 60
    code = re.sub(r"^```.*", "", text, flags=re.M)  # the line of a fence is no output
    example = doctest.DocTestParser().get_doctest(code, {"__name__": room}, room, str(path), 0)
    with same_conditions():
        result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example)
    assert result.attempted and not result.failed


@pytest.mark.parametrize("room", [*ROOMS, "classroom"])
def test_each_file_that_the_readme_of_a_room_names_is_there(room):
    """A name without a folder may stand in the one that the cell named before it."""
    text = (ROOT / room / "README.md").read_text(encoding="utf-8")
    for cell in re.findall(r"\|([^|\n]*)(?=\|)", text):
        folders = [ROOT, ROOT / room]
        for name in re.findall(r"`([\w./]+(?:/|\.(?:py|md|css|js|html|sh)))`", cell):
            found = [folder / name for folder in folders if (folder / name).exists()]
            assert found, name
            folders += [path.parent for path in found]


@pytest.mark.parametrize("path", notebooks.names(), ids=lambda path: path.stem)
def test_the_readme_lists_every_notebook_with_its_question_and_minutes(path):
    row = re.search(
        rf"^\|[^|]*\]\(notebooks/{path.name}\)[^|]*\| *([^|]+\?) *\| *[^|]+\. *\| *(\d+) *"
        r"\| *\d+ MB *\|$",
        (ROOT / "README.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    assert row, (
        f"README has no row | [00](notebooks/{path.name}) | question? | answer. | minutes "
        "| memory |"
    )
    first = nbformat.read(path, as_version=4).cells[0].source
    assert row[1] in first.splitlines()[0]
    assert f"{row[2]} min" in first, "the notebook's first cell says other minutes"


def test_the_readme_lists_no_notebook_that_is_not_there():
    for name in re.findall(
        r"\(notebooks/([^)]+)\)", (ROOT / "README.md").read_text(encoding="utf-8")
    ):
        assert (notebooks.SOURCE / name).exists(), name


TEXTS = pytest.mark.parametrize(
    "name",
    sorted(
        str(path.relative_to(ROOT))
        for pattern in ("*.md", "*/README.md", "tools/*/README.md", "teaching/*.md")
        for path in ROOT.glob(pattern)
    ),
)


@TEXTS
def test_every_make_command_in_the_texts_exists(name):
    targets = re.findall(
        r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )
    for target in re.findall(
        r"(?:`|^)make ([a-z-]+)", (ROOT / name).read_text(encoding="utf-8"), re.M
    ):
        assert target in targets, target


def links(name):
    """All links of a text as (words, file, anchor); file or anchor may be empty."""
    return re.findall(
        r"\[([^\]]*)\]\(([^)#]*)(?:#([^)]*))?\)", (ROOT / name).read_text(encoding="utf-8")
    )


@TEXTS
def test_every_link_to_a_file_leads_somewhere(name):
    for _, link, _ in links(name):
        assert link.startswith("http") or ((ROOT / name).parent / link).exists(), link


@TEXTS
def test_every_link_to_a_section_leads_to_its_heading(name):
    """Such a link into a notebook says the heading itself, so that it is found on paper, too."""
    for words, link, anchor in links(name):
        path = (ROOT / name).parent / link if link else ROOT / name
        if anchor and path.suffix == ".ipynb":
            book = Book(path.stem, nbformat.read(path, as_version=4), path.stat().st_size)
            assert words in [text for _, _, text in book.headings], words
            assert anchor == words.replace("`", "").replace(" ", "-"), anchor  # as JupyterLab
        elif anchor and path.suffix == ".md":
            headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.M)
            on_github = [re.sub(r"[^\w -]", "", text.lower()) for text in headings]
            assert anchor in [text.replace(" ", "-") for text in on_github], anchor


def test_a_tool_that_is_started_runs_its_main():
    for path in (notebooks.ROOT / "tools").rglob("*.py"):
        text = path.read_text("utf-8")
        if "\ndef main() ->" in text:
            assert text.endswith('\n\n\nif __name__ == "__main__":\n    main()\n'), path


def test_all_calls_of_pytest_have_the_plugin():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert pyproject()["tool"]["pytest"]["ini_options"]["addopts"].startswith("-p tests.plugin ")
    others = [line for line in makefile.splitlines() if "--override-ini addopts=" in line]
    assert len(others) == 2 and all(" -p tests.plugin " in line for line in others)


def test_the_first_page_of_the_repository_fits_a_screen():
    """What git holds at the root stands above the README: 24 entries, dotfiles counted."""
    git = ["git", "-C", str(ROOT), "ls-files", "-z"]
    if not (ROOT / ".git").exists():
        pytest.skip("a copy without its repository")
    files = subprocess.run(git, capture_output=True, text=True, check=True).stdout.split("\0")
    assert len({name.partition("/")[0] for name in files if name}) <= 24


def test_the_longest_files_come_first_then_those_with_most_tests():
    """And no file is torn, since a notebook's cells need each other."""
    there = {path.name for folder in ("tests", "notebooks") for path in (ROOT / folder).rglob("*")}
    first, last = plugin.LONGEST[0], plugin.LONGEST[-1]
    assert there >= set(plugin.LONGEST)
    files = {"test_few.py": 2, last: 3, "test_many.py": 3, "test_too.py": 3, first: 1}
    items = [
        SimpleNamespace(path=Path(name), number=number)
        for name, count in files.items()
        for number in range(count)
    ]
    plugin.pytest_collection_modifyitems(items)
    order = [first, last, "test_many.py", "test_too.py", "test_few.py"]
    expected = [(name, number) for name in order for number in range(files[name])]
    assert [(item.path.name, item.number) for item in items] == expected
