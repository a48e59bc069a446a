"""What of classroom/ needs neither root nor a hub; the rest is tested in tests/classroom."""

import json
import re
import shutil
import subprocess

import pytest
import yaml

from classroom import HUB, WORK, accounts, publish
from tools import lab, notebooks

FOLDER = notebooks.ROOT / "classroom"


def test_a_list_gives_passwords_by_name(tmp_path):
    (tmp_path / "class.txt").write_text("anna:a:b c\n\nben-2:x\n")
    assert accounts.read(tmp_path / "class.txt") == {"anna": "a:b c", "ben-2": "x"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("anna:a\nBen:b\n", "Line 2 of .* has to be name:password"),
        ("anna\n", "Line 1 of .* has to be name:password"),
        ("anna:\n", "Line 1 of .* has to be name:password"),
        ("../x:a\n", "Line 1 of .* has to be name:password"),
        (f"{'a' * 31}:a\n", "Line 1 of .* up to 30"),
        ("anna:a\nanna:b\n", "anna stands twice in .*, again in line 2"),
        ("root:a\n", "Line 1 of .* names root, an account of the system"),
        ("\n", "is empty: write a line name:password for each student"),
        (None, "cannot be read: name a text file"),
    ],
)
def test_a_list_with_a_mistake_ends_in_one_sentence(text, told, tmp_path, capsys):
    path = tmp_path / "class.txt"
    if text is not None:
        path.write_text(text)
    with pytest.raises(SystemExit):
        accounts.read(path)
    said = capsys.readouterr().err
    assert re.search(told, said) and said.count("\n") == 1


def test_a_foreign_folder_is_not_taken_for_the_notebooks(tmp_path):
    work = tmp_path / WORK
    assert accounts.is_ours(work)
    work.mkdir()
    assert not accounts.is_ours(work)
    (work / ".git").mkdir()
    (work / ".git/config").write_text("[remote]\nurl = https://git.example.org/own\n")
    assert not accounts.is_ours(work)
    (work / ".git/config").write_text(f"[remote]\nurl = file://{HUB}/notebooks\n")
    assert accounts.is_ours(work)


def test_published_notebooks_have_no_outputs_and_an_update_is_one_commit(tmp_path, monkeypatch):
    folder = tmp_path / "notebooks"
    assert publish.publish(folder)
    assert not publish.publish(folder)  # nothing has changed
    for path in notebooks.names():
        assert (folder / path.name).read_text(encoding="utf-8") == lab.for_learner(path)
    less = tmp_path / "less"
    less.mkdir()
    text = notebooks.names()[0].read_text(encoding="utf-8")
    (less / "00_start_here.ipynb").write_text(text.replace("# ", "# New: ", 1), encoding="utf-8")
    monkeypatch.setattr(notebooks, "SOURCE", less)
    assert publish.publish(folder)
    assert [path.name for path in notebooks.names(folder)] == ["00_start_here.ipynb"]
    assert len(publish.git(folder, "log", "--oneline").splitlines()) == 2


def test_git_never_merges_the_lines_of_two_notebooks(tmp_path):
    """Lines of a student's notebook and of an update, put together, need not be a notebook."""
    theirs, mine = tmp_path / "notebooks", tmp_path / "mine"
    publish.publish(theirs)
    publish.git(tmp_path, "clone", "--quiet", str(theirs), str(mine))
    name = notebooks.names()[0].name
    for folder, line in ((theirs, 3), (mine, 9)):
        lines = (folder / name).read_text(encoding="utf-8").splitlines(keepends=True)
        lines[line] = " " + lines[line]
        (folder / name).write_text("".join(lines), encoding="utf-8")
        publish.git(folder, "commit", "--quiet", "--all", "--message=x")
    before = (mine / name).read_bytes()
    publish.git(mine, "fetch", "--quiet")
    publish.git(mine, "merge", "--quiet", "-Xours", f"origin/{publish.BRANCH}")
    assert (mine / name).read_bytes() == before


@pytest.mark.parametrize(("id", "told"), [("1000", "with sudo"), ("0", "npm is needed")])
def test_what_the_install_needs_is_told_before_it_begins(id, told, tmp_path):
    """The pretended machine has nothing but ``id`` and what one finds without looking."""
    for name, does in {"id": f"echo {id}", "git": "", "node": ""}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / name).chmod(0o755)
    done = subprocess.run(
        [shutil.which("bash"), "classroom/install.sh"],
        cwd=notebooks.ROOT,
        env={"PATH": str(tmp_path), "HUB": str(tmp_path / "hub")},
        capture_output=True,
        text=True,
    )
    assert done.returncode and told in done.stderr and done.stderr.count("\n") == 1
    assert not (tmp_path / "hub").exists()


@pytest.mark.parametrize("script", ["install.sh", "student.sh"])
def test_scripts_are_shell(script):
    assert not subprocess.run(["sh", "-n", FOLDER / script]).returncode


def test_lists_are_exact():
    lines = (FOLDER / "requirements.txt").read_text().splitlines()
    pinned = [line for line in lines if not line.startswith("#")]
    assert all(re.match(r"[a-z-]+==\d+(\.\d+)+ +# \w", line) for line in pinned)
    packages = json.loads((FOLDER / "package.json").read_text())["dependencies"]
    lock = json.loads((FOLDER / "package-lock.json").read_text())["packages"]
    assert lock[""]["dependencies"] == packages
    assert all(re.fullmatch(r"\d+(\.\d+)+", version) for version in packages.values())


def test_the_values_for_kubernetes_start_what_is_there():
    values = yaml.safe_load((FOLDER / "z2jh-values.yaml").read_text())
    server = values["singleuser"]
    assert server["cmd"][-1] == "/srv/project/classroom/student.sh"
    assert server["defaultUrl"].endswith(f"{WORK}/{notebooks.names()[0].name}")
    used = set(re.findall(r'"\$([A-Z_]+)"', (FOLDER / "student.sh").read_text()))
    assert used - {"MEM_LIMIT"} <= set(server["extraEnv"])


def test_the_image_gets_what_it_copies_and_no_secret():
    copied = re.findall(r"^COPY (\S+) ", (FOLDER / "Dockerfile").read_text(), re.M)
    lines = (notebooks.ROOT / ".dockerignore").read_text().splitlines()
    everything, *rest = [line for line in lines if not line.startswith("#")]
    let_in = [line[1:] for line in rest if line.startswith("!")]
    assert everything == "*" and "classroom/z2jh-values.yaml" in rest[len(let_in) :]
    assert set(let_in) == {path.split("/")[0] for path in copied}
    assert all((notebooks.ROOT / path).exists() for path in copied)


def test_the_chart_is_named_with_the_jupyterhub_that_the_image_has():
    """Which chart has which JupyterHub was looked up once; a change of one has to say the other."""
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"^helm upgrade .*", text, re.M)
    assert commands and all("--version 4.4.0 " in command for command in commands)
    assert "\nARG JUPYTERHUB=5.5.0\n" in (FOLDER / "Dockerfile").read_text()
