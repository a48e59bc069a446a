"""Terms of the glossary in the text of a page: where each is defined, what leads to its meaning.

A term is marked where it is defined, and where it stands first in a section after that. A mark is
a link to the glossary; static/site.js shows the meaning beside it.
"""

import re
from functools import cache

from bs4 import BeautifulSoup, NavigableString, Tag

from lesson import TERMS
from lesson.terms import Term

SHORTEST = 3  # letters of a synonym that is looked for: "id" stands for too much else


def anchor(heading: str) -> str:
    """The anchor that JupyterLab gives to a heading."""
    return heading.replace(" ", "-")


def defined(term: Term) -> str:
    """The anchor of the place that defines a term."""
    return f"term-{anchor(term.name)}"


def note_definitions(body: BeautifulSoup, number: str) -> None:
    """Give each term of a notebook an anchor where it first stands in bold: there it is defined."""
    bold = body.select(".text strong")
    for term in TERMS.values():
        words = re.compile(rf"{re.escape(term.name)}(s|es)?", re.IGNORECASE)
        found = (tag for tag in bold if words.fullmatch(tag.get_text()))
        if term.notebook == number and (tag := next(found, None)):
            tag["id"] = defined(term)


def mark(body: BeautifulSoup, number: str) -> list[Term]:
    """Mark the terms in the text of a page; returns those that are marked, in order.

    Words with an everyday meaning, too, are marked only where they are defined.
    """
    here = {defined(term): term for term in TERMS.values() if term.notebook == number}
    known = {term.name for term in TERMS.values() if term.notebook < number}
    found: dict[str, Term] = {}
    met: set[str] = set()  # in this section
    # The first cell says what the notebook is about. Tables stay as they are, and so do titles of
    # papers, which stand in italics.
    for part in body.select("h2, .text p, .text li"):
        if part.name == "h2":
            met = set()
            continue
        if part.find_parent(["table", "li"]) or part.find_parent(class_="cell").h1:
            continue
        for text in list(part.find_all(string=True)):
            if text.find_parent(["a", "code", "pre", "em"]):
                continue
            if term := here.get((text.parent.name == "strong" and text.parent.get("id")) or ""):
                known.add(term.name)
                text.replace_with(_link(body, term, str(text)))
                found[term.name] = term
                met.add(term.name)
            else:
                _mark_first(body, text, known, met, found)
    return list(found.values())


def _mark_first(
    body: BeautifulSoup,
    text: NavigableString,
    known: set[str],
    met: set[str],
    found: dict[str, Term],
) -> None:
    """Mark the known terms of a piece of text that its section has not met."""
    pieces: list[str | Tag] = []
    end = 0
    for match in pattern().finditer(text):
        term = names()[match[1].lower()]
        if term.name in known and term.name not in met:
            pieces += [text[end : match.start()], _link(body, term, match[0])]
            end = match.end()
            met.add(term.name)
            found[term.name] = term
    if pieces:
        text.replace_with(*pieces, text[end:])


def _link(body: BeautifulSoup, term: Term, words: str) -> Tag:
    """What a mark is: a link to the glossary, described by the meaning of the term."""
    name = anchor(term.name)
    described = {"aria-describedby": f"meaning-{name}"}
    link = body.new_tag("a", href=f"glossary.html#{name}", attrs={"class": "term", **described})
    link.string = words
    return link


@cache
def names() -> dict[str, Term]:
    """Every name under which a term is found, in small letters."""
    return {
        name.lower(): term
        for term in TERMS.values()
        if not term.everyday
        for name in (term.name, *term.also)
        if len(name) >= SHORTEST
    }


@cache
def pattern() -> re.Pattern[str]:
    """Any of these names as a word of its own, or in the plural; of two, the longer one."""
    longest_first = sorted(names(), key=len, reverse=True)
    either = "|".join(map(re.escape, longest_first))
    return re.compile(rf"(?<![\w-])({either})(?:s|es)?(?![\w-])", re.IGNORECASE)
