"""The lines of a notebook are those of its files and of its explorer."""

from tools import budget

FILES = {
    "notebooks/03_three.ipynb": "show(explore_dial())",
    "notebooks/04_four.ipynb": "show(explore_dial())\nshow(explore_wheel())",
    "helpers/lesson/exercises/nb03.py": "1\n2\n",
    "helpers/lesson/exercises/03.md": "1\n",
    "helpers/explorers/dial.py": "1\n2\n3\n",
    "helpers/explorers/explorer.py": "1\n2\n3\n4\n",
    "helpers/pictures/wheel.py": "1\n",
    "helpers/clinic/bugs.md": "1\n2\n3\n",
    "tests/explorers/test_wheel.py": "1\n",
    "tests/proofs/nb03.py": "1\n2\n",
}


def test_lines_are_counted_for_the_notebook_that_they_belong_to(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert budget.lines(tmp_path) == {
        "03": {"Python": 5, "pages": 1, "tests": 2},
        "04": {"tests": 1},
        "engine": {"Python": 5, "pages": 3},
    }


def test_more_than_the_budget_has_a_star(monkeypatch, capsys):
    counted = {"03": {"Python": 601, "pages": 320, "tests": 9}, "engine": dict.fromkeys("x", 1)}
    counted = {owner: budget.Counter(kinds) for owner, kinds in counted.items()}
    monkeypatch.setattr(budget, "lines", lambda root: counted)
    budget.main()
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert rows == [
        ["Python", "pages", "tests"], ["03", "601*", "320", "9"], ["engine", "0", "0", "0"]
    ]  # fmt: skip
