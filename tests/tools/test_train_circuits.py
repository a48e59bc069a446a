"""make circuits: what it computes is what is stored."""

import errno

import numpy as np
import pytest
import torch

from helpers.circuits import moments, trained, trained_on_repeats, training_moments
from helpers.circuits.trained import Variant
from tools import notebooks, train_circuits

STORED = training_moments()
# Another machine rounds otherwise. With older instructions of the processor no number moved by more
# than 2e-4, and with parameters that differed by 1e-6 from the start, by 5e-4.
ATOL = 0.01


@pytest.fixture
def path(tmp_path, monkeypatch):
    """Where the moments go, in the place of the stored ones; there are two of them only."""
    monkeypatch.setattr(notebooks, "ROOT", tmp_path)
    monkeypatch.setattr(train_circuits, "STEPS", range(0, 11, 10))
    monkeypatch.setattr(trained, "PATH", tmp_path / "trained.pt")
    for module in (train_circuits, moments):
        monkeypatch.setattr(module, "PATH", tmp_path / "moments.npz")
    few = {"letters that occur once": Variant(n_letter=60, n_step=2, distinct=True)}
    for module in (train_circuits, trained):
        monkeypatch.setattr(module, "VARIANTS", few)
    return tmp_path / "moments.npz"


@pytest.mark.slow
def test_it_writes_the_first_moments_as_they_are_stored(path):
    train_circuits.main()
    for name, values in training_moments()._asdict().items():
        stored = getattr(STORED, name)[:2]
        assert values.shape == stored.shape, name
        assert (values - stored).abs().max() < ATOL, name
    model = trained_on_repeats("letters that occur once")
    again = trained.VARIANTS["letters that occur once"].train()
    for stored, value in zip(model.parameters(), again.parameters(), strict=True):
        assert torch.equal(stored, value.half().float())


def test_a_full_disk_is_told_and_the_stored_moments_stay(path, disk, refused, monkeypatch):
    path.write_bytes(b"old")
    monkeypatch.setattr(train_circuits, "moments", lambda: {"right": np.zeros((1, 3, 3))})
    disk(errno.ENOSPC, "moments.part")
    assert "moments.npz cannot be written, because the disk is full" in refused(train_circuits.main)
    assert [file.name for file in path.parent.iterdir()] == ["moments.npz"]
    assert path.read_bytes() == b"old"


def test_what_was_trained_is_told_and_where_it_is(path, capsys, monkeypatch):
    right = np.arange(18).reshape(2, 3, 3) / 100
    monkeypatch.setattr(train_circuits, "moments", lambda: {"right": right})
    monkeypatch.setattr(train_circuits, "parameters", lambda variant: variant.n_letter)
    train_circuits.main()
    assert np.array_equal(np.load(path)["right"], right)
    assert torch.load(trained.PATH) == {"letters that occur once": 60}
    _, exact, _, *written = capsys.readouterr().out.splitlines()
    said = "Layer 0 exact: the share right with layer 1 is 0.120 learned, 0.130 exact, 0.140 equal."
    assert exact == said
    assert written == [
        f"Written to {file.name}, {file.stat().st_size / 1000:.0f} KB."
        for file in (path, trained.PATH)
    ]


@pytest.mark.slow
def test_the_stored_moments_are_what_the_command_computes(monkeypatch):
    """Three of the 21; to measure them takes longer than the training."""
    train = train_circuits.train_on_repeats

    def some(model, n_step, watch):
        train(model, n_step, watch=lambda step: step % 100 or watch(step))

    monkeypatch.setattr(train_circuits, "train_on_repeats", some)
    for name, values in train_circuits.moments().items():
        stored = getattr(STORED, name).numpy()[::10]
        assert values.shape == stored.shape, name
        assert np.abs(values.astype(np.float32) - stored).max() < ATOL, name
