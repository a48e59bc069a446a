"""make cheatsheet: its page says what CHEATSHEET.md says. `make browser` counts its sheets."""

from tests.pictures import reading
from tools import cheatsheet


def test_the_page_has_the_text_the_tables_and_the_code(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(cheatsheet, "OUT", tmp_path / "sheet.html")
    cheatsheet.main()
    assert "sheet.html in a browser" in capsys.readouterr().out
    page = (tmp_path / "sheet.html").read_text(encoding="utf-8")
    source = cheatsheet.SOURCE.read_text(encoding="utf-8")
    body = reading.parse(page[page.index("<main>") : page.index("</body>")])
    rows = [line for line in source.splitlines() if line.startswith("|") and "---" not in line]
    assert len(list(body.iter("tr"))) == len(rows) > 20
    assert len(list(body.iter("pre"))) == source.count("```") / 2
    assert "rows sum to 1, but there are weights on the future" in reading.words(body)


def test_it_loads_nothing():
    for loads in ("src=", "url(", "@import", "http:", "https:", "<script"):
        assert loads not in cheatsheet.page(), loads


def test_a_page_that_cannot_be_written_is_told(tmp_path, monkeypatch, refused):
    monkeypatch.setattr(cheatsheet, "OUT", tmp_path)
    assert "cannot be written" in refused(cheatsheet.main)
