"""A hub of its own for each worker's tests, with two students, Anna and Ben."""

import pytest

from classroom import left, simulated

DISKS = left.disks


@pytest.fixture(scope="session", autouse=True)
def open_folders_only():
    """Search where tests leave files: all of the machine takes seconds for each removal."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(left, "disks", lambda: ["/dev/shm", "/tmp", "/var/tmp"])
        yield


@pytest.fixture
def whole_machine(monkeypatch):
    """Let removals search all of the machine, as they do for a teacher."""
    monkeypatch.setattr(left, "disks", DISKS)


@pytest.fixture(scope="session")
def hub(open_folders_only):
    """A running hub."""
    with simulated.running(["anna", "ben"]) as hub:
        yield hub


@pytest.fixture(scope="session")
def names(hub):
    """The names of Anna and Ben."""
    return list(hub.passwords)


@pytest.fixture
def anna(hub, names):
    """Anna's browser, logged in."""
    return hub.enter(names[0])


@pytest.fixture
def ben(hub, names):
    """Ben's browser, logged in."""
    return hub.enter(names[1])
