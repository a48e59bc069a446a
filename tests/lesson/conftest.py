import pytest

from lesson import progress_file


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A place where progress is kept, for once: everywhere else it is switched off in tests."""
    path = tmp_path / "progress.jsonl"
    monkeypatch.setenv("ATTENTION_PROGRESS", str(path))
    monkeypatch.setattr(progress_file, "_told", False)
    return path
