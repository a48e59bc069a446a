import os
import subprocess
import sys

import pytest

from tools import notebooks

ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
LATIN = {"PYTHONIOENCODING": "latin-1"}


def printed(text, package, settings):
    """What a new Python prints after importing a package, on stdout and on stderr."""
    code = f"import sys, {package}\nfor s in sys.stdout, sys.stderr: print({text!a}, file=s)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=notebooks.ROOT,
        env={**os.environ, "PYTHONIOENCODING": "", **settings},
        capture_output=True,
    )
    assert done.returncode == 0, ascii(done.stderr.decode("latin-1"))
    return done.stdout.rstrip(b"\n"), done.stderr.rstrip(b"\n")


@pytest.mark.parametrize("package", ["attention_base", "tools"])
@pytest.mark.parametrize(
    ("settings", "encoding", "name"), [(ASCII, "ascii", "Andre"), (LATIN, "latin-1", "André")]
)
def test_a_print_says_in_plain_signs_what_the_terminal_cannot_show(
    package, settings, encoding, name
):
    plain = f"[ok] 03.1 ... sqrt d -> 10^-5, {name} ?".encode(encoding)
    assert printed("✓ 03.1 … √d → 10⁻⁵, André 猫", package, settings) == (plain, plain)


def test_a_terminal_that_shows_everything_gets_everything():
    """Its own way with file names that are not text (surrogateescape) stays, too."""
    settings = {"PYTHONIOENCODING": "utf-8:surrogateescape"}
    assert printed("✓ √d \udcff", "attention_base", settings)[0] == "✓ √d ".encode() + b"\xff"


def test_each_sign_has_its_plain_form():
    signs = "✓ ✗ ○ ◐ √2 3×4 2·3 → ← a–b a—b −1 ≤ ≥ ≈ “a” ‘b’ ∞ x² é … ½ 字"
    plain = "[ok] [wrong] [open] [ok now] sqrt 2 3x4 2*3 -> <- a-b a-b -1 <= >= ~"
    plain += " \"a\" 'b' inf x^2 e ... 1/2 ?"
    assert signs.encode("ascii", "plain").decode("ascii") == plain
