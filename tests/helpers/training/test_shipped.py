"""The model that ships with the project."""

import tomllib

import pytest
import torch
import torch.nn.functional as F

from helpers.gpt import decode, encode
from helpers.training import Corpus, about_shipped_model, drop_repeats, python_help, shipped_model
from helpers.training.shipped import PATH
from tools import notebooks


@pytest.fixture(scope="module")
def shipped():
    return shipped_model()


def test_it_is_small_and_its_parameters_are_rounded_to_float16(shipped):
    model, letters = shipped
    assert PATH.stat().st_size <= 300_000
    assert model.context_length == 256 and model.vocab_size == len(letters)
    assert 110_000 < sum(p.numel() for p in model.parameters()) < 116_000
    for p in model.parameters():
        assert p.dtype == torch.float32 and torch.equal(p, p.half().float())
    assert not model.training


@pytest.fixture(scope="module")
def losses(shipped):
    """The mean loss at each place of the validation windows. Another Python has other texts."""
    model, letters = shipped
    known = "".join(c for c in Corpus(drop_repeats(python_help())).validation if c in letters)
    windows = encode(known, letters).unfold(0, 257, 256)
    with torch.no_grad():
        logits = model(windows[:, :-1])
    return F.cross_entropy(logits.transpose(1, 2), windows[:, 1:], reduction="none").mean(dim=0)


@pytest.mark.slow
def test_it_guesses_the_help_texts_of_this_python(losses):
    assert 1.0 < losses.mean() < 1.7


def test_it_guesses_best_late_in_its_window(losses):
    quarters = [quarter.mean() for quarter in losses.chunk(4)]
    assert min(quarters[1:]) < quarters[0] and quarters[3] < quarters[0]


def test_it_writes_words(shipped):
    model, letters = shipped
    ids = encode("The ", letters)[None]
    text = decode(
        model.generate(ids, 300, 0.5, generator=torch.Generator().manual_seed(0))[0], letters
    )
    seen = set(python_help().split())
    words = text.split()[:-1]  # the last may be cut
    assert sum(word in seen for word in words) > 0.7 * len(words)


def test_how_it_was_trained_is_told():
    about = about_shipped_model()
    assert 60 < about["seconds"] < 300 and 1.0 < about["validation_loss"] < 1.6
    assert about["n_step"] > 1000 and about["B"] >= 1 and about["processor"]
    assert about["date"].startswith("20") and about["torch"] and about["python"]


def test_its_files_are_installed_with_the_package():
    project = tomllib.loads((notebooks.ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = project["tool"]["setuptools"]["package-data"]["*"]
    assert all(
        any(file.match(one) for one in patterns) for file in (PATH, PATH.with_suffix(".json"))
    )
