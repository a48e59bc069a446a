"""Printing where the terminal cannot show every character, as under `LC_ALL=C` or in Latin-1."""

import codecs
import re
import sys
import unicodedata

# What is written for a sign that has no plain form in Unicode's own tables.
PLAIN = str.maketrans(
    {"✓": "[ok]", "✗": "[wrong]", "○": "[open]", "◐": "[ok now]", "√": "sqrt ", "×": "x"}
    | {"·": "*", "→": "->", "←": "<-", "–": "-", "—": "-", "−": "-", "≤": "<=", "≥": ">=", "≈": "~"}
    | {"“": '"', "”": '"', "‘": "'", "’": "'", "∞": "inf", "⁄": "/"}  # ½ is 1⁄2
)


def _plain(error: UnicodeError) -> tuple[str, int]:
    """Stand in for the characters that an encoding does not have."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    text = re.sub("[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+", r"^\g<0>", text)  # 10⁻⁸ is 10^-8, not 10-8
    parts = unicodedata.normalize("NFKD", text).translate(PLAIN)  # … is ..., é is e and ´
    letters = "".join(part for part in parts if not unicodedata.combining(part))
    return letters.encode("ascii", "replace").decode("ascii"), error.end


def print_anywhere() -> None:
    """Let no print fail for a character: write a plain one where the terminal has no other."""
    codecs.register_error("plain", _plain)
    for stream in (sys.stdout, sys.stderr):
        # A notebook's streams and those that take all characters stay as they are.
        if hasattr(stream, "reconfigure") and not stream.encoding.lower().startswith("utf"):
            stream.reconfigure(errors="plain")
