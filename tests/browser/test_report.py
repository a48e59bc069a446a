"""The page about a class as a teacher first sees it, and on paper."""

import pytest

from tests.browser.test_sheets import sheets
from tests.tools.invented import write_class
from tools import report


@pytest.fixture
def class_page(chromium, tmp_path):
    write_class(tmp_path)
    report.main([str(tmp_path)])
    page = chromium.new_page(viewport={"width": 1280, "height": 800})
    page.goto((tmp_path / "report.html").as_uri())
    yield page
    page.close()


def bottom(locator):
    box = locator.bounding_box()
    return box["y"] + box["height"]


def test_the_first_screen_says_what_to_talk_about_and_names_the_rest(class_page):
    lines = class_page.locator("ol.next > li")
    rest = class_page.locator("main > details")
    assert (lines.count(), rest.count()) == (5, 3)
    assert max(bottom(each) for each in [*lines.all(), *rest.all()]) <= 800
    assert not class_page.evaluate("document.documentElement.scrollWidth > innerWidth")


def test_a_part_that_is_opened_takes_a_screen_and_scrolls_below_its_heads(class_page):
    for part in class_page.locator("main > details").all():
        part.locator("> summary").click()
        assert 400 < part.bounding_box()["height"] < 1000
        table = part.locator(".wide")
        table.evaluate("box => { box.scrollTop = 400; box.scrollLeft = 300; }")
        box, head = table.bounding_box(), table.locator("thead th").last.bounding_box()
        assert abs(head["y"] - box["y"]) < 3
    row = class_page.locator("#grid tbody th[scope=row]").last
    assert abs(row.bounding_box()["x"] - box["x"]) < 3


def test_paper_has_what_is_folded(class_page):
    folded = sheets(class_page.pdf(format="A4", landscape=True))
    class_page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    assert sheets(class_page.pdf(format="A4", landscape=True)) == folded > 3
