"""Formulas on the pages of the site: KaTeX renders them when the site is built."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from tools import notebooks, npm

HERE = Path(__file__).parent


def render(formulas: list[tuple[str, bool]]) -> list[str]:
    """Render formulas as HTML: pairs of the TeX text, and whether it stands on a line of its own.

    Raises
    ------
    SystemExit
        In one sentence, where a formula is not valid.
    """
    ran = subprocess.run(
        ["node", str(HERE / "formulas.cjs")],
        input=json.dumps(formulas),
        env={**os.environ, "NODE_PATH": str(npm.PACKAGES)},
        capture_output=True,
        text=True,
    )
    if ran.returncode:
        last = (ran.stderr.strip().splitlines() or ["node said nothing"])[-1]
        notebooks.stop(
            f"A formula cannot be rendered, {last.rstrip('.')}: mend it in its notebook."
        )
    return json.loads(ran.stdout)


def copy_katex(folder: Path) -> None:
    """Copy KaTeX's style sheet and its fonts, in the format that all browsers read."""
    source = npm.PACKAGES / "katex" / "dist"
    (folder / "fonts").mkdir(parents=True)
    css = (source / "katex.min.css").read_text(encoding="utf-8")
    css = re.sub(r',url\([^)]*\.(woff|ttf)\) format\("\w+"\)', "", css)
    (folder / "katex.css").write_text(css, encoding="utf-8")
    for font in (source / "fonts").glob("*.woff2"):
        shutil.copy(font, folder / "fonts")
