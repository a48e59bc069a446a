"""A hub of its own for the tests, with two students, Anna and Ben."""

import pytest

from classroom import simulated


@pytest.fixture(scope="session")
def hub():
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
