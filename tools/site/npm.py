"""What the site takes from npm: KaTeX, which renders formulas, and for its tests axe-core."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from tools import notebooks

HERE = Path(__file__).parent
FOLDER = notebooks.ROOT / "build" / "npm-site"
LISTS = ("package.json", "package-lock.json")  # exact versions, with their checksums
DONE = "installed"  # holds the lists that the last finished install was made from
NO_LONG_WAIT = ["--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-timeout=60000"]


def install() -> None:
    """Install what `LISTS` name into build/, unless it is there.

    Raises
    ------
    SystemExit
        In one sentence, where npm is missing or fails.
    """
    wanted = "".join((HERE / name).read_text(encoding="utf-8") for name in LISTS)
    done = FOLDER / DONE
    if done.exists() and done.read_text(encoding="utf-8") == wanted:
        return
    if not shutil.which("npm") or not shutil.which("node"):
        notebooks.stop(
            "The site needs Node.js and npm, which are not here: install them from nodejs.org or "
            "your package manager (Debian, Ubuntu: apt install nodejs npm), then run the same "
            "command again."
        )
    print("Installing KaTeX and axe-core into build/ (only the first time)", flush=True)
    with notebooks.writing(FOLDER):
        FOLDER.mkdir(parents=True, exist_ok=True)
        done.unlink(missing_ok=True)
        for name in LISTS:
            shutil.copy(HERE / name, FOLDER)
    command = ["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error", *NO_LONG_WAIT]
    ran = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True)
    if ran.returncode:
        code = re.search(r" code (\S+)", ran.stderr)
        notebooks.stop(
            "npm could not install what tools/site/package.json names "
            f"({code[1] if code else 'it gave no reason'}): "
            "check the network and the free disk space, then run the same command again."
        )
    with notebooks.writing(done):
        done.write_text(wanted, encoding="utf-8")


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
        env={**os.environ, "NODE_PATH": str(FOLDER / "node_modules")},
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
    source = FOLDER / "node_modules" / "katex" / "dist"
    (folder / "fonts").mkdir(parents=True)
    css = (source / "katex.min.css").read_text(encoding="utf-8")
    css = re.sub(r',url\([^)]*\.(woff|ttf)\) format\("\w+"\)', "", css)
    (folder / "katex.css").write_text(css, encoding="utf-8")
    for font in (source / "fonts").glob("*.woff2"):
        shutil.copy(font, folder / "fonts")
