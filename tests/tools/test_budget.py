"""A notebook's lines are those of its files, its explorer and its figures; rooms have limits."""

import pytest

from tools import budget

FILES = {
    "notebooks/03_three.ipynb": "show(explore_dial())",
    "notebooks/04_four.ipynb": "show(explore_dial())\nshow(explore_wheel())",
    "lesson/exercises/nb03.py": "1\n2\n",
    "lesson/exercises/03.md": "1\n",
    "explorers/dial.py": "1\n2\n3\n",
    "explorers/explorer.py": "1\n2\n3\n4\n",
    "explorers/README.md": "1\n2\n3\n4\n5\n",
    "helpers/pictures/wheel.py": "1\n",
    "attention_clinic/bugs.md": "1\n2\n3\n",
    "tests/explorers/test_wheel.py": "1\n",
    "tests/lesson/proofs/nb03.py": "1\n2\n",
}


@pytest.fixture
def project(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_lines_are_counted_for_the_notebook_that_they_belong_to(project):
    assert budget.lines_by_notebook(project) == {
        "03": {"Python": 5, "pages": 1, "tests": 2},
        "04": {"tests": 1},
        "engine": {"Python": 5, "pages": 3},
    }
    counted = budget.lines_by_room(project)
    assert {room: n for room, n in counted.items() if n} == {
        "explorers": 7, "helpers": 1, "lesson": 2, "tests": 3
    }  # fmt: skip


def test_more_than_the_budget_has_a_star_and_more_than_the_limit_fails(monkeypatch, capsys):
    counted = {"03": {"Python": 601, "pages": 320, "tests": 9}, "engine": dict.fromkeys("x", 1)}
    counted = {owner: budget.Counter(kinds) for owner, kinds in counted.items()}
    monkeypatch.setattr(budget, "lines_by_notebook", lambda root: counted)
    monkeypatch.setattr(budget, "LIMITS", {})
    budget.main()
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:4]]
    assert rows == [
        ["Python", "pages", "tests"], ["03", "601*", "320", "9"], ["engine", "0", "0", "0"]
    ]  # fmt: skip
    monkeypatch.setattr(budget, "LIMITS", {"helpers": 1})
    with pytest.raises(SystemExit):
        budget.main()
    assert "Too many lines in helpers: make it smaller, or raise" in capsys.readouterr().err
