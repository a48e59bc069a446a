"""What `make cheatsheet` writes, printed on A4 and on Letter."""

import re

import pytest

from tools import cheatsheet

# Sheets of each page: the exit questions have one for the class, and one for the key.
SHEETS = {"cheatsheet": 1, "checklist": 1, "goals": 1, "exit_questions": 2}


@pytest.mark.parametrize("paper", ["A4", "Letter"])
@pytest.mark.parametrize("name", SHEETS)
def test_each_page_prints_on_its_sheets(chromium, name, paper):
    page = chromium.new_page()
    page.set_content(cheatsheet.page(name))
    assert sheets(page.pdf(format=paper)) == SHEETS[name]
    page.close()


def test_no_code_of_the_cheat_sheet_is_cut_off_by_the_picture(chromium):
    page = chromium.new_page(viewport={"width": 720, "height": 1000})  # as wide as A4's text
    page.set_content(cheatsheet.page("cheatsheet"))
    page.emulate_media(media="print")
    too_wide = "tags => tags.filter(tag => tag.scrollWidth > tag.clientWidth).length"
    assert page.locator("pre").count() == 2
    assert page.eval_on_selector_all("pre", too_wide) == 0
    page.close()


def sheets(pdf):
    """How many pages a PDF has."""
    return len(re.findall(rb"/Type */Page\b(?!s)", pdf))
