"""Slides in JupyterLab: the copy that they open, and the sentences where they cannot."""

import os

import pytest

from tools.slides import live


def test_a_notebook_that_is_not_there_is_told_with_the_list(folder, refused):
    with pytest.raises(SystemExit, match=r"no notebook 31: .* NB=03 from 00_start, 01_bag"):
        live.main("31")
    assert refused(live.main, "").startswith("Say which notebook: make slides NB=03, from 00_start")


def test_what_make_installs_is_asked_for_where_it_is_missing(folder, monkeypatch, refused):
    monkeypatch.setattr(live, "find_spec", lambda name: None)
    assert "run make slides" in refused(live.main, "01")


def test_they_open_the_copy_without_earlier_answers_and_hand_on_arguments(
    folder, monkeypatch, capsys
):
    opened = []
    monkeypatch.setattr(live, "find_spec", lambda name: True)
    monkeypatch.setattr(live, "become_jupyterlab", lambda *given: opened.append(given))
    monkeypatch.setattr(live.sys, "argv", ["live", "01", "--port", "8899"])
    monkeypatch.setenv("ATTENTION_PROGRESS", "/home/teacher/answers.jsonl")
    live.main("01")
    assert opened == [("01_bag.ipynb", live.SETTINGS)]
    assert live.sys.argv == ["live", "--port", "8899"]
    assert os.environ["ATTENTION_PROGRESS"] == "0"
    assert folder.copy().exists()
    assert "JupyterLab opens work/01_bag.ipynb" in capsys.readouterr().out
