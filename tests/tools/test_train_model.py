"""make model, with two steps of training in the place of thousands."""

import itertools
import json
from types import SimpleNamespace

import pytest
import torch

from helpers.training import Corpus, drop_repeats, load_model, python_help, validation_loss
from tools import notebooks, train_model


@pytest.fixture
def path(tmp_path, monkeypatch):
    """Where the model goes, in the place of the one that ships."""
    monkeypatch.setattr(notebooks, "ROOT", tmp_path)
    monkeypatch.setattr(train_model, "PATH", tmp_path / "shipped.pt")
    monkeypatch.setattr(train_model, "CONTEXT_LENGTH", 16)
    monkeypatch.setattr(train_model, "SETTING", {**train_model.SETTING, "n_step": 2})
    clock = itertools.count(1000.0, 118.26)  # between one look at it and the next
    monkeypatch.setattr(train_model, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    monkeypatch.setattr(train_model, "python_help", lambda: python_help()[:30_000])
    return tmp_path / "shipped.pt"


def test_it_writes_the_model_and_how_it_was_trained(path, capsys):
    train_model.main()
    model, letters = load_model(path)
    assert model.context_length == 16 and set(letters) <= set(python_help())
    assert all(torch.equal(p, p.half().float()) for p in model.parameters())
    about = json.loads(path.with_suffix(".json").read_text("utf-8"))
    assert about["n_step"] == 2 and about["seconds"] == 118.3
    assert about["torch"] == torch.__version__
    corpus = Corpus(drop_repeats(train_model.python_help()))
    assert about["validation_loss"] == round(validation_loss(model, corpus), 4)
    printed = capsys.readouterr().out
    assert all(f'"{name}": {json.dumps(value)}' in printed for name, value in about.items())
    assert "Written to shipped.pt" in printed


def test_the_same_command_gives_the_same_model(path):
    train_model.main()
    first, _ = load_model(path)
    loss = json.loads(path.with_suffix(".json").read_text("utf-8"))["validation_loss"]
    train_model.main()
    again, _ = load_model(path)
    assert all(map(torch.equal, first.state_dict().values(), again.state_dict().values()))
    assert json.loads(path.with_suffix(".json").read_text("utf-8"))["validation_loss"] == loss


def test_a_folder_that_takes_no_file_is_told(path, refused, monkeypatch):
    monkeypatch.setattr(train_model, "PATH", path / "missing" / "shipped.pt")
    assert "shipped.pt could not be written" in refused(train_model.main)
