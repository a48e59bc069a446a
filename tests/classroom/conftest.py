"""A hub of its own for each worker's tests, with two students, Anna and Ben."""

from pathlib import Path

import pytest

from classroom import left, simulated


@pytest.fixture(scope="session", autouse=True)
def open_folders_only():
    """Search where tests leave files: all of a machine takes a minute and more for each removal."""
    with pytest.MonkeyPatch.context() as patch:
        everywhere = {Path(place).stat().st_dev for place in left.disks()}
        places = ["/dev/shm", "/opt", "/tmp", "/var/tmp"]
        assert everywhere >= {Path(place).stat().st_dev for place in places}
        patch.setattr(left, "disks", lambda: places)
        yield


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
