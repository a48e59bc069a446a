"""Files with a model: whole after a kill and on a full disk, refused in words."""

import itertools
import multiprocessing
import os
import pickle
import random
import time
import zipfile

import pytest
import torch
from torch import nn

from attention_base import files
from helpers.gpt import TinyGPT
from helpers.training import checkpoint, load_model, save_model
from tests.helpers.training import small
from tests.helpers.training.small import CORPUS, same


def save(path, scale=1.0):
    """A file of the small model with other parameters for each scale."""
    model = small.model()
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(scale)
    save_model(path, model, CORPUS.letters)
    return model


@pytest.fixture
def path(tmp_path):
    return tmp_path / "gpt.pt"


@pytest.mark.parametrize("options", [{}, {"rotary": False, "n_layer": 2}], ids=str)
def test_a_model_alone_in_whole_and_in_half_precision(path, options):
    model = small.model(**options)
    random_state = torch.random.get_rng_state()
    sizes = []
    for half in (False, True):
        save_model(path, model, CORPUS.letters, half=half)
        read, letters = load_model(path)
        assert letters == CORPUS.letters and read.config == model.config
        rounded = [p.half().float() if half else p for p in model.parameters()]
        assert same([*read.parameters()], rounded) and all(p.requires_grad for p in rounded)
        assert all(p.dtype == torch.float32 and p.requires_grad for p in read.parameters())
        sizes.append(sum(value.nbytes for value in torch.load(path)["state"].values()))
    assert sizes[0] == 2 * sizes[1]
    assert torch.equal(random_state, torch.random.get_rng_state())


# ---------------------------------------------------------------- whole or not at all


@pytest.fixture
def child():
    """Run a function in a copy of this process, which may be killed; it can send one text."""
    if "fork" not in multiprocessing.get_all_start_methods():
        pytest.skip("no fork here")
    context, started = multiprocessing.get_context("fork"), []

    def start(function):
        ours, theirs = context.Pipe()
        process = context.Process(target=function, args=(theirs.send,))
        process.start()
        started.append(process)
        return process, ours

    yield start
    for process in started:
        process.kill()
        process.join()


@pytest.mark.slow
def test_a_kill_in_the_middle_of_a_write_leaves_a_whole_file(path, child):
    models = [save(path, scale) for scale in (2, 1)]

    def save_in_turn(send):
        for made in itertools.cycle(models):
            save_model(path, made, CORPUS.letters)
            send("saved")

    found, chance = set(), random.Random(0)
    for _ in range(25):
        process, said = child(save_in_turn)
        for _ in range(chance.randint(1, 2)):
            said.recv()
        time.sleep(chance.uniform(0, 0.005))  # a save takes about as long
        process.kill()
        process.join()
        read, _ = load_model(path)
        found |= {
            i for i, one in enumerate(models) if same([*read.parameters()], [*one.parameters()])
        }
    assert found == {0, 1}


@pytest.mark.parametrize("there", [True, False])
def test_a_full_disk_leaves_the_old_file_and_says_so(path, child, there):
    resource = pytest.importorskip("resource")
    if there:
        save(path)
    before = path.read_bytes() if there else None

    def save_with_little_room(send):
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
        try:
            save(path, 2)
        except OSError as error:
            send(f"{type(error).__name__}: {error}")

    _, said = child(save_with_little_room)
    kept = "The file that was there is untouched" if there else "Nothing was written"
    assert said.poll(20)
    assert said.recv() == (
        f"OSError: {path} could not be written: File too large. {kept}. Free some disk space, or "
        "choose another folder, then save again."
    )
    assert (path.read_bytes() if path.exists() else None) == before
    assert list(path.parent.iterdir()) == [path] * there


@pytest.mark.parametrize("fails", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_whatever_fails_nothing_is_left_beside_the_old_file(path, monkeypatch, fails, error):
    save(path)
    before = path.read_bytes()

    def fail(*_):
        raise error

    monkeypatch.setattr(files.os, fails, fail)
    with pytest.raises(type(error)):
        save(path, 2)
    assert path.read_bytes() == before and list(path.parent.iterdir()) == [path]


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(
        OSError, match=r"no/gpt\.pt could not be written: No such file.*Make the folder .*no, or"
    ):
        save(tmp_path / "no" / "gpt.pt")


# ---------------------------------------------------------------- what is refused


def test_a_file_that_is_not_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError) as error:
        load_model("gpt.pt")
    assert str(error.value).startswith(f"There is no file gpt.pt in the folder {tmp_path}. ")


def test_what_is_no_file_is_told(path):
    path.mkdir()
    assert refused(path).startswith("cannot be read: Is a directory. Give a file.")
    path.rmdir()
    path.symlink_to(path)
    assert refused(path).startswith("cannot be read: ")


@pytest.mark.parametrize("name", ["n_layer", "C", "context_length", "vocab_size"])
def test_sizes_that_the_parameters_do_not_have_take_neither_time_nor_memory(path, name):
    save(path)
    content = torch.load(path)
    content["config"][name] = 10**7
    content["letters"] = 10**7 * "a" if name == "vocab_size" else content["letters"]
    torch.save(content, path)
    if name == "context_length" and content["config"]["rotary"]:
        assert load_model(path)[0].context_length == 10**7  # no parameter depends on it
    else:
        assert refused(path).startswith("is a checkpoint with wrong parts")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_parameters_that_are_no_numbers_are_refused(path, value):
    save(path)
    content = torch.load(path)
    content["state"]["norm.weight"][0] = value
    torch.save(content, path)
    assert "norm.weight holds nan or inf" in refused(path)


def refused(path):
    """What is said of a file."""
    with pytest.raises(ValueError) as error:
        load_model(path)
    assert str(error.value).startswith(f"{path} ")
    assert error.value.__context__ is None or error.value.__suppress_context__
    return str(error.value).removeprefix(f"{path} ")


def test_a_file_of_something_else_is_refused(path, tmp_path):
    path.write_bytes(b"")
    assert refused(path).startswith("is empty. Take a copy")
    for data in (b"\x89PNG\r\n\x1a\n\0\0\0", b"text", pickle.dumps({"format": 1}), bytes(5000)):
        path.write_bytes(data)
        assert refused(path).startswith("is no checkpoint. Give a file that save_model has")
    torch.save({"format": checkpoint.FORMAT}, path, _use_new_zipfile_serialization=False)
    assert refused(path).startswith("is no checkpoint. ")
    model = nn.Linear(2, 2)
    for content in (model.state_dict(), {"model": model.state_dict()}, model, [1, 2], "text", None):
        torch.save(content, path)
        assert refused(path).startswith("is no checkpoint of this project. Give a file that")
    with zipfile.ZipFile(path, "w") as other:
        other.writestr("word/document.xml", "<xml/>")
    assert refused(path).startswith("is no checkpoint of this project. ")


def test_nothing_that_a_file_brings_along_is_run(path, tmp_path):
    class Harmful:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "made"),)

    torch.save({"format": checkpoint.FORMAT, "version": 1, "letters": Harmful()}, path)
    assert refused(path).startswith("is no checkpoint of this project. ")
    assert not (tmp_path / "made").exists()


def test_a_file_that_was_cut_off_is_refused(path):
    save(path)
    data = path.read_bytes()
    for length in [2, 3, 10, 100, len(data) - 1, *range(1000, len(data), 3001)]:
        path.write_bytes(data[:length])
        assert refused(path).startswith("is damaged or was cut off. Take a copy of the file")


def test_a_file_in_which_bytes_changed_is_refused_or_says_the_same(path):
    made = save(path)
    data, source, refusals = path.read_bytes(), random.Random(0), 0
    for _ in range(60):
        wrong = bytearray(data)
        wrong[source.randrange(2, len(data))] ^= 1 << source.randrange(8)
        path.write_bytes(wrong)
        try:
            read, _ = load_model(path)
        except ValueError:
            refusals += 1
        else:  # in the padding between the parts, or in a date
            assert same([*read.parameters()], [*made.parameters()])
    assert refusals > 10


@pytest.mark.parametrize("version", [0, 2, None, "1"])
def test_another_version_of_the_format_is_refused(path, version):
    save(path)
    torch.save(torch.load(path) | {"version": version}, path)
    assert refused(path).startswith(f"has version {version!r} of the format, but this copy of the")


WRONG = {
    "config": [{}, {"vocab_size": 3}, {"vocab_size": -1, "context_length": 8}, None],
    "state": [{}, {"norm.weight": 1}, None, {"norm.weight": torch.ones(3)}],
    "letters": ["ab", 7, None],
}


def test_parts_that_do_not_fit_are_refused(path):
    save(path)
    right = torch.load(path)
    for name, values in WRONG.items():
        torch.save({part: value for part, value in right.items() if part != name}, path)
        assert "is a checkpoint with wrong parts (KeyError: '" + name in refused(path)
        for value in values:
            torch.save(right | {name: value}, path)
            assert "is a checkpoint with wrong parts (" in refused(path), (name, value)


class Deeper(TinyGPT):
    """Another program with the same sizes."""


def test_a_model_that_its_sizes_do_not_bring_back_is_not_saved(path):
    changed = small.model()
    changed.blocks[0].attention.proj = nn.Identity()
    for model in (Deeper(5, 8), changed, nn.Linear(2, 2)):
        with pytest.raises(ValueError, match=r"Only a TinyGPT of helpers\.gpt with its own"):
            save_model(path, model, "abcde")
    with pytest.raises(ValueError, match="made for 5 letters, but the vocabulary has 3"):
        save_model(path, TinyGPT(5, 8), "abc")
    assert not path.exists()
