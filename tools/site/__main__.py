"""Write the series as static pages into site/: ``python -m tools.site``."""

import json
import os
import shutil
import time
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

import nbformat

from tools import cheatsheet, lab, notebooks, npm

SITE = notebooks.ROOT / "site"
MARK = ".made-by-make-site"  # in a folder that may be replaced
README = notebooks.ROOT / "README.md"
NAME = "Attention from a for-loop"
ABOUT = (
    "A course in notebooks: you begin with a Python loop that averages numbers, and end with a "
    "language model that you have written yourself."
)


def build(paths: Iterable[Path], folder: Path, url: str = "") -> None:
    """Write the site of these notebooks into an empty folder, which will be at this address.

    Raises
    ------
    SystemExit
        In one sentence, where a notebook cannot be read or run.
    """
    # Here, because they take seconds: what stops a build is said before.
    from explorers.explorer import RULES
    from tools.site import formulas, live, model, nouns, pages, preview

    paths = list(paths)
    read = {path.stem: _read(path) for path in paths}
    (folder / "notebooks").mkdir()
    for path in paths:
        shutil.copyfile(path, folder / "notebooks" / path.name)
    maker = pages.Maker(list(read))
    made = []
    for name, nb in read.items():
        print(f"{name} ...", flush=True)
        try:
            made.append(maker.page(name, nb))
        except live.CannotRun as error:
            notebooks.stop(f"{name} cannot be shown live, because {error}. Mend that cell first.")
    intro, run = (maker.markdown(part) for part in _readme())
    rendered = formulas.render(maker.formulas.tex)

    def write(file: str, template: str, **values: object) -> None:
        text = pages.templates().get_template(template)
        values |= {"site": NAME, "pages": made, "here": file}
        html = text.render(values, formulas=False)
        if pages.FORMULA.search(html):  # then it needs the style of formulas, too
            html = text.render(values, formulas=True)
        _write(folder / file, maker.formulas.put_in(html, rendered))

    shown, choices = model.shipped(), nouns.choices()
    (folder / "preview.png").write_bytes(preview.preview(NAME, ABOUT, choices[0]))
    built_in = next((page for page in made if page.number == "10"), made[0] if made else None)
    write(
        "index.html",
        "index.html",
        about=ABOUT,
        url=url,
        preview=preview.said(choices[0]),
        intro=intro,
        run=run,
        nouns=choices,
        last=next((page for page in made if page.number == "15"), None),
        model=shown,
        built_in=built_in,
    )
    _write(folder / "model-weights.js", shown.script)
    for before, page, after in zip([None, *made], made, [*made[1:], None], strict=False):
        write(page.file, "notebook.html", page=page, before=before, after=after)
        if page.live:
            script = "".join(shown.script for shown in page.live.values())
            _write(folder / "live" / f"{page.number}.js", script)
        for file, png in page.pictures.items():
            (folder / "img").mkdir(exist_ok=True)
            (folder / "img" / file).write_bytes(png)
    write("glossary.html", "glossary.html", terms=list(pages.terms(made)))
    write("search.html", "search.html")
    for sheet in cheatsheet.SHEETS:
        _write(folder / f"{sheet}.html", cheatsheet.page(sheet, back="index.html"))
    found = [
        {"page": page.label, "file": page.file, **asdict(section)}
        for page in [*made, pages.glossary_page()]
        for section in page.sections
    ]
    _write(folder / "search.js", f"window.SECTIONS = {json.dumps(found, ensure_ascii=False)};\n")
    static = Path(__file__).parent / "static"
    _write(folder / "site.css", (static / "site.css").read_text("utf-8") + RULES)
    for script in static.glob("*.js"):
        shutil.copy(script, folder)
    formulas.copy_katex(folder / "katex")
    _write(folder / MARK, "make site replaces this folder.\n")


def replace(old: Path, new: Path) -> None:
    """Put a finished folder into the place of an old one, which may be missing."""
    aside = new.with_name(f"{new.name}-old")
    if old.exists():
        old.rename(aside)
    new.rename(old)
    shutil.rmtree(aside, ignore_errors=True)


def refuse_foreign(site: Path) -> None:
    """End in one sentence where a folder is not one that make site has made."""
    if site.is_symlink() or (site.exists() and not site.is_dir()):
        wrong = "is not a folder"
    elif site.exists() and any(site.iterdir()) and not (site / MARK).exists():
        wrong = "holds files that make site did not write"
    else:
        return
    notebooks.stop(
        f"{notebooks.shown(site)} {wrong}: move it away, then run the same command again."
    )


def _read(path: Path) -> nbformat.NotebookNode:
    try:
        lab.read(path)
        return nbformat.read(path, as_version=4)
    except lab.Unreadable as error:
        notebooks.stop(f"{error}: clone the repository again, or restore that file with git.")


def _readme() -> tuple[str, str]:
    """What README says before its picture, and how to start."""
    text = README.read_text(encoding="utf-8")
    intro = text.partition("\n")[2].partition("\n![")[0]
    run = text.partition("\n## Start\n")[2].partition("\n## ")[0]
    return intro, run


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")


def main() -> None:
    """Build the site beside the old one, then put it in its place."""
    start = time.monotonic()
    notebooks.one_environment()
    paths = notebooks.names()
    if not paths:
        notebooks.stop("There are no notebooks in notebooks/: clone the repository again.")
    refuse_foreign(SITE)
    npm.need("site")
    part = notebooks.ROOT / "build" / "site"
    shutil.rmtree(part, ignore_errors=True)
    try:
        with notebooks.writing(SITE):
            part.mkdir(parents=True)
            build(paths, part, os.environ.get("URL", ""))
            replace(SITE, part)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    size = sum(path.stat().st_size for path in SITE.rglob("*") if path.is_file()) / 1e6
    print(f"Written in {time.monotonic() - start:.0f} s, {size:.1f} MB. Open site/index.html.")


if __name__ == "__main__":
    main()
