"""One Chromium for all tests here; without one, nothing is tested, and a sentence says so."""

import pytest

from tools import browser


@pytest.fixture(scope="session")
def chromium(request):
    running = browser.chromium()
    try:
        with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            started = running.__enter__()
    except SystemExit:  # the sentence has been printed
        pytest.exit("nothing was tested", returncode=1)
    yield started
    running.__exit__(None, None, None)
