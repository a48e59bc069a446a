"""make cheatsheet: its pages say what their sources say. `make browser` counts their sheets."""

import pytest

from tests.pictures import reading
from tools import cheatsheet, notebooks

SAYS = {
    "cheatsheet": "rows sum to 1, but there are weights on the future",
    "checklist": "Is an output the same when everything after it is cut off?",
}


def test_the_pages_have_the_text_the_tables_and_the_code(monkeypatch, capsys):
    written = {}
    monkeypatch.setattr(notebooks, "write_whole", written.__setitem__)
    cheatsheet.main()
    assert {path.stem for path in written} == SAYS.keys()
    assert capsys.readouterr().out.count(".html in a browser") == len(SAYS)
    for path, page in written.items():
        source = cheatsheet.SHEETS[path.stem].read_text(encoding="utf-8")
        body = reading.parse(page[page.index("<main>") : page.index("</body>")])
        rows = [line for line in source.splitlines() if line.startswith("|") and "---" not in line]
        assert len(list(body.iter("tr"))) == len(rows) > 10
        assert len(list(body.iter("pre"))) == source.count("```") / 2
        assert SAYS[path.stem] in reading.words(body)


@pytest.mark.parametrize("sheet", cheatsheet.SHEETS)
def test_they_load_nothing(sheet):
    for loads in ("src=", "url(", "@import", "http:", "https:", "<script"):
        assert loads not in cheatsheet.page(sheet), loads


def test_a_page_that_cannot_be_written_is_told(tmp_path, monkeypatch, refused):
    monkeypatch.setattr(notebooks, "ROOT", tmp_path)
    (tmp_path / "cheatsheet.html").mkdir()
    assert "cannot be written" in refused(cheatsheet.main)
