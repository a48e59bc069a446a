"""What of classroom/ needs neither root nor a hub; the rest is tested in tests/classroom."""

import json
import os
import pwd
import re
import shutil
import socket
import subprocess
import threading
from pathlib import Path

import pytest
import yaml

from classroom import WORK, accounts, collect, hub, left, publish
from classroom.simulated import free_ports, until
from tools import lab, notebooks

FOLDER = notebooks.ROOT / "classroom"
needs_git = pytest.mark.skipif(not shutil.which("git"), reason="needs git")


def test_a_list_gives_passwords_by_name(tmp_path):
    path = tmp_path / "class.txt"
    path.write_bytes("# a class\nanna:a:long one\r\n\nben-2:12345678\n".encode("utf-8-sig"))
    assert accounts.read(path) == {"anna": "a:long one", "ben-2": "12345678"}
    path.write_text("anna\n  # who has left\nben-2:x\nnobody\n")
    assert list(accounts.read(path, need_passwords=False)) == ["anna", "ben-2", "nobody"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("anna:12345678\nBen:12345678\n", "Line 2 of .* has to be name:password"),
        ("anna\n", "Line 1 of .* too short"),
        ("anna:\n", "Line 1 of .* too short"),
        ("name:password\nanna:12345678\n", "Line 1 of .* is the heading of a table"),
        ("../x:12345678\n", "Line 1 of .* has to be name:password"),
        (f"{'a' * 31}:12345678\n", "Line 1 of .* up to 30"),
        ("anna:1234567\n", "Line 1 of .* too short.* anna needs 8 characters"),
        (f"anna:{'ä' * 300}\n", "Line 1 of .* too long.* at most 500 bytes, and this has 600"),
        ("anna: 12345678\n", "Line 1 of .* begins or ends with a blank"),
        ("anna:12345678\nanna:87654321\n", "anna stands twice in .*, again in line 2"),
        ("root:12345678\n", "Line 1 of .* names root, an account of the system"),
        ("\n", "is empty: write a line name:password for each student"),
        ("anna:\xe4\xf6\xfc\xdf-12345".encode("latin-1"), "is no UTF-8 text"),
        (None, "cannot be read .No such file"),
    ],
)
def test_a_list_with_a_mistake_ends_in_one_sentence(text, told, tmp_path, capsys):
    path = tmp_path / "class.txt"
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(SystemExit):
        accounts.read(path)
    said = capsys.readouterr().err
    assert re.search(told, said) and said.count("\n") == 1


@pytest.mark.parametrize("what", ["add", "remove"])
def test_ctrl_c_says_that_the_same_command_goes_on(what, tmp_path, monkeypatch, capsys):
    (tmp_path / "class.txt").write_text("anna:12345678")

    def interrupted(*students):
        raise KeyboardInterrupt

    monkeypatch.setattr(accounts, what, interrupted)
    monkeypatch.setattr("sys.argv", ["accounts", what, str(tmp_path / "class.txt")])
    with pytest.raises(SystemExit):
        accounts.main()
    said = capsys.readouterr().err
    assert said.startswith("Interrupted: run the same command again") and said.count("\n") == 1


def test_an_account_without_a_home_is_refused(tmp_path, capsys, monkeypatch):
    """As nobody, whose number is no small one."""
    account = pwd.struct_passwd(("nobody", "x", 65534, 65534, "", "/nonexistent", "/bin/sh"))
    monkeypatch.setattr(accounts, "existing", lambda name: account)
    (tmp_path / "class.txt").write_text("nobody:12345678\n")
    with pytest.raises(SystemExit):
        accounts.read(tmp_path / "class.txt")
    assert "names nobody, an account of the system or without a home" in capsys.readouterr().err


def test_a_student_of_another_hub_is_refused(tmp_path, capsys, monkeypatch):
    account = pwd.struct_passwd(
        ("anna", "x", 2000, 2000, "Student of /opt/another,,", str(tmp_path), "/bin/sh")
    )
    monkeypatch.setattr(accounts, "existing", lambda name: account)
    (tmp_path / "class.txt").write_text("anna:12345678\n")
    with pytest.raises(SystemExit):
        accounts.read(tmp_path / "class.txt")
    assert "names anna, a student of the hub in /opt/another: choose" in capsys.readouterr().err
    monkeypatch.setenv("HUB", "/opt/another")
    assert accounts.read(tmp_path / "class.txt")


@pytest.mark.skipif(not Path("/proc/self/mounts").exists(), reason="needs Linux, as a hub does")
def test_more_open_folders_than_a_command_can_name_are_searched(tmp_path, monkeypatch):
    for number in range(10_000):
        folder = tmp_path / f"{number:0250}"
        folder.mkdir()
        folder.chmod(0o777)
    monkeypatch.setattr(left, "disks", lambda: [str(tmp_path)])
    monkeypatch.setattr(left, "ALSO", [])
    student = pwd.struct_passwd(("anna", "x", os.getuid(), 99_999, "", "/home/of an'na", ""))
    found, all_of_it = left.found([student])
    assert len(found[os.getuid()]) == 10_000 and all_of_it


def test_collect_names_its_folder_to_the_report_also_where_it_looks_like_an_option(monkeypatch):
    named = []
    monkeypatch.setattr(collect.report, "main", named.append)
    monkeypatch.setattr(collect.os, "geteuid", lambda: 0)
    monkeypatch.setattr(collect, "need_folder", lambda folder: None)
    monkeypatch.setattr(collect, "collect", lambda folder: (["anna"], []))
    monkeypatch.setattr(collect, "hand_over", lambda path: None)
    for folder in ("--help", "-n"):
        monkeypatch.setattr("sys.argv", ["collect", folder])
        collect.main()
    assert named == [["--", "--help"], ["--", "-n"]]


def test_the_hub_may_have_as_many_connections_as_the_system_allows(tmp_path, monkeypatch):
    before = hub.resource.getrlimit(hub.resource.RLIMIT_NOFILE)
    (tmp_path / "state").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(hub.os, "execve", lambda *command: None)
    hub.resource.setrlimit(hub.resource.RLIMIT_NOFILE, (1024, before[1]))
    try:
        hub.become_jupyterhub(tmp_path)
        files, most = hub.resource.getrlimit(hub.resource.RLIMIT_NOFILE)
        assert files == most or files >= 65_536
    finally:
        hub.resource.setrlimit(hub.resource.RLIMIT_NOFILE, before)


def test_students_get_the_code_and_no_list_that_lies_in_a_clone(tmp_path, monkeypatch):
    clone, project = tmp_path / "clone", tmp_path / "hub/project"
    for name in hub.COPIED:
        shutil.copytree(notebooks.ROOT / name, clone / name)
    lists = ("classroom/class.txt", "tools/class.csv", "classroom/monday/anna.jsonl", "helpers/b")
    for name in lists:
        (clone / name).parent.mkdir(exist_ok=True)
        (clone / name).write_text("anna:correct-horse-1")
    monkeypatch.setattr(notebooks, "ROOT", clone)
    monkeypatch.setattr(hub.compileall, "compile_dir", lambda *folders, **settings: 0)
    monkeypatch.setattr(hub, "publish", lambda folder: None)
    project.parent.mkdir()
    hub.renew(project.parent)
    assert not [name for name in lists if (project / name).exists()]
    needed = [path for name in notebooks.ROOMS for path in (notebooks.ROOT / name).rglob("*.*")]
    needed += [clone / "classroom/bin/node", clone / "classroom/student.sh", *clone.rglob("*.json")]
    needed = {path.relative_to(clone) for path in needed if path.is_file()}
    missing = {path for path in needed if not (project / path).exists()}
    assert {path.suffix for path in missing} <= {".pyc", ".toml"}


def test_a_folder_that_a_students_group_may_change_is_refused(tmp_path, monkeypatch):
    student = pwd.struct_passwd(("anna", "x", 99_999, os.getgid(), "", "/home/anna", ""))
    monkeypatch.setattr(collect, "members", lambda: ["anna"])
    monkeypatch.setattr(collect, "existing", lambda name: student)
    tmp_path.chmod(0o770)
    assert collect.in_students_hands(tmp_path / "class") == tmp_path
    other = pwd.struct_passwd((*student[:3], 99_999, *student[4:]))
    monkeypatch.setattr(collect, "existing", lambda name: other)  # the teacher's own group
    assert collect.in_students_hands(tmp_path / "class") is None
    monkeypatch.setenv("SUDO_UID", str(os.getuid()))
    monkeypatch.setenv("SUDO_GID", str(os.getgid()))
    (tmp_path / "of root").write_text("kept")
    (tmp_path / "anna.jsonl").symlink_to(tmp_path / "of root")
    with pytest.raises(SystemExit):
        collect.write(tmp_path / "anna.jsonl", b"x")
    assert (tmp_path / "of root").read_text() == "kept"


@pytest.mark.parametrize("PORT", ["abc", "0", "-1", "65534", "8000 "])
def test_a_port_that_is_none_is_told(PORT, monkeypatch, capsys):
    monkeypatch.setenv("PORT", PORT)
    with pytest.raises(SystemExit):
        hub.chosen_port()
    assert f"got {PORT}." in capsys.readouterr().err
    monkeypatch.setenv("PORT", "9000")
    assert hub.chosen_port() == 9000


@pytest.mark.slow
@pytest.mark.parametrize("offset", [0, 1, 2])
def test_a_port_that_another_program_has_is_told(offset, capsys, monkeypatch):
    monkeypatch.setattr(hub, "PATIENCE", 0.5)
    port = free_ports()
    hub.need_ports(port)
    with socket.create_server(("127.0.0.1", port + offset)) as other:
        with pytest.raises(SystemExit):
            hub.need_ports(port)
        threading.Timer(0.1, other.close).start()
        hub.need_ports(port)  # a proxy that ends has a moment for it
    said = capsys.readouterr().err
    assert f"Port {port + offset} cannot be used (Address already in use)" in said
    assert f"{port} to {port + 2}" in said


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="needs Linux, as a hub does")
def test_the_proxy_of_a_killed_hub_is_ended_and_nothing_else(tmp_path):
    (tmp_path / "state").mkdir()
    hub.end_old_proxy(tmp_path)  # there was none
    proxy, other = (
        subprocess.Popen(["sh", "-c", f"sleep 1000; : {name}"])
        for name in ("node_modules/.bin/configurable-http-proxy", "another program")
    )
    try:
        for each in (other, proxy):
            until(Path(f"/proc/{each.pid}/cmdline").read_bytes, 5)  # empty while it starts
            (tmp_path / "state/proxy.pid").write_text(f"{each.pid}\n")
            hub.end_old_proxy(tmp_path)
        assert proxy.wait(5) and other.poll() is None
    finally:
        other.kill()
        proxy.kill()


@needs_git
def test_published_notebooks_have_no_outputs_and_an_update_is_one_commit(tmp_path, monkeypatch):
    folder = tmp_path / "notebooks"
    assert publish.publish(folder)
    assert not publish.publish(folder)  # nothing has changed
    of_students = {"progress.jsonl", "mine.py", "mine_history.jsonl"}
    assert of_students <= {*(folder / ".gitignore").read_text().split()}
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


@pytest.mark.parametrize(
    "what", ["file", "folder", "notebooks", pytest.param("clone", marks=needs_git)]
)
def test_publish_touches_nothing_that_it_has_not_made(what, tmp_path, capsys):
    folder = tmp_path / "there"
    folder.mkdir()
    if what == "notebooks":
        shutil.copy(notebooks.names()[0], folder)
    elif what == "clone":
        publish.git(folder, "init", "--quiet")
    else:
        (folder / "mine").write_text("mine")
    if what == "file":
        folder = folder / "mine"
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(SystemExit):
        publish.publish(folder)
    said = capsys.readouterr().err
    assert ("has to be a folder" if what == "file" else "holds something else") in said
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@needs_git
def test_what_is_published_can_be_read_by_all(tmp_path):
    before = os.umask(0o077)
    try:
        publish.publish(tmp_path / "notebooks")
    finally:
        os.umask(before)
    for path in (tmp_path / "notebooks").rglob("*"):
        assert path.stat().st_mode & 0o444 == 0o444, path


@needs_git
def test_a_failure_of_git_is_one_sentence(tmp_path, capsys):
    with pytest.raises(SystemExit):
        publish.git(tmp_path, "log")
    said = capsys.readouterr().err
    assert said.startswith(f"git log failed in {tmp_path}") and said.count("\n") == 1


def test_publish_without_git_says_what_to_install(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit):
        publish.publish(tmp_path / "published")
    said = capsys.readouterr().err
    assert said.startswith("git is needed") and "apt install git" in said and said.count("\n") == 1


@needs_git
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
    image = (FOLDER / "Dockerfile").read_text()
    copied = re.findall(r"^COPY (\S+) ", image, re.M)
    lines = (FOLDER / "Dockerfile.dockerignore").read_text().splitlines()
    everything, *rest = [line for line in lines if not line.startswith("#")]
    let_in = [line[1:] for line in rest if line.startswith("!")]
    assert everything == "*" and "classroom/z2jh-values.yaml" in rest[len(let_in) :]
    assert set(let_in) == {path.split("/")[0] for path in copied}
    assert all((notebooks.ROOT / path).exists() for path in copied)
    assert "\nRUN [ ! -e /srv/project/classroom/z2jh-values.yaml ]\n" in image


def test_the_chart_is_named_with_the_jupyterhub_that_the_image_has():
    """Which chart has which JupyterHub was looked up once; a change of one has to say the other."""
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"^helm upgrade .*", text, re.M)
    assert commands and all("--version 4.4.0 " in command for command in commands)
    assert "\nARG JUPYTERHUB=5.5.0\n" in (FOLDER / "Dockerfile").read_text()
