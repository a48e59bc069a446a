import pytest

from helpers.pictures import base


@pytest.fixture(autouse=True)
def start_with_pictures(monkeypatch):
    """Whatever the switch to tables says outside, these tests start with pictures."""
    monkeypatch.delenv("ATTENTION_TABLES", raising=False)
    monkeypatch.setattr(base, "_tables", None)
