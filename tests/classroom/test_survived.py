"""What a class survives: updates, full disks, and whatever is killed."""

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from classroom.publish import git
from classroom.simulated import Browser, Refused, until
from tools import notebooks

THIRD = "03_softmax_masking.ipynb"
NOTEBOOK = f"work/{THIRD}"
MINE = "# my own line"


def processes(name, what):
    """The ids of an account's processes whose command line has ``what`` in it."""
    done = subprocess.run(["pgrep", "-u", name, "-f", what], capture_output=True, text=True)
    return [int(id) for id in done.stdout.split()]


def edited(browser, path=NOTEBOOK, line=MINE):
    """Open a notebook, write a line into its first code cell, and save."""
    notebook = browser.open(path)
    cell = next(cell for cell in notebook["cells"] if cell["cell_type"] == "code")
    cell["source"] = f"{line}\n{cell['source']}"
    browser.save(path, notebook)
    return notebook


def answer_a_question(kernel):
    """Keep one line of progress."""
    kernel.run("from lesson import predict\npredict('03.p1', 'b')")


def lines_of(name):
    """A student's progress, each line as JSON."""
    text = Path(f"/home/{name}/work/progress.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def published(hub, change):
    """Change the texts of all notebooks and publish them, as a teacher does with make hub."""
    folder = hub.folder / "notebooks"
    for path in notebooks.names(folder):
        path.write_text(change(path.read_text()))
    git(folder, "commit", "--quiet", "--all", "--message=An update")
    return {path.name: path.read_text() for path in notebooks.names(folder)}


def restarted(browser):
    """Stop the student's server and start it again: that is when an update arrives."""
    browser.stop_server()
    return browser.start_server()


def test_an_update_keeps_each_notebook_that_the_student_has_saved(hub, ben):
    home = Path(f"/home/{ben.name}/work")
    answer_a_question(ben.kernel(NOTEBOOK))
    edited(ben)
    ben.ask("PATCH", "contents/work/05_scaling.ipynb", json={"path": "work/mine.ipynb"})
    saved = {name: (home / name).read_bytes() for name in (THIRD, "progress.jsonl", "mine.ipynb")}
    new = published(hub, lambda text: text.replace('"source": [', '"source": [\n"New. ",', 1))
    restarted(ben)
    assert all((home / name).read_bytes() == kept for name, kept in saved.items())
    assert MINE in (home / THIRD).read_text()
    others = set(new) - {THIRD}
    assert all((home / name).read_text() == new[name] for name in others)  # 05 came back
    assert all(json.loads((home / name).read_text())["cells"] for name in new)
    assert not git(home_owner(ben), "status", "--porcelain", "--untracked-files=no")


def home_owner(browser):
    """The student's folder, which root's git is told to trust."""
    folder = Path(f"/home/{browser.name}/work")
    os.environ.update(
        GIT_CONFIG_COUNT="1", GIT_CONFIG_KEY_0="safe.directory", GIT_CONFIG_VALUE_0=str(folder)
    )
    return folder


@contextmanager
def small_home(name):
    """Let a student's home lie on a disk of its own with 30 MB, for a while."""
    home = Path(f"/home/{name}")
    away = home.with_name(f"{name}-away")
    subprocess.run(["cp", "-a", str(home), str(away)], check=True)
    owner = f"uid={home.stat().st_uid},gid={home.stat().st_gid}"
    mounted = ["mount", "-t", "tmpfs", "-o", f"size=30m,mode=0700,{owner}", "tmpfs", str(home)]
    try:
        if subprocess.run(mounted, capture_output=True).returncode:
            pytest.skip("nothing can be mounted here")
        subprocess.run(["cp", "-a", f"{away}/.", str(home)], check=True)
        yield home
    finally:
        subprocess.run(["umount", "--lazy", str(home)], capture_output=True)
        shutil.rmtree(away)


def files_in(folder):
    """The files of a folder with their bytes."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def fill(home):
    """Fill a disk to its last byte."""
    with open(home / "big", "wb", buffering=0) as big, suppress(OSError):
        while True:
            big.write(bytes(4096))
    return home / "big"


def test_a_full_home_is_told_and_loses_nothing(hub, names):
    name = names[1]
    hub.enter(name).stop_server()
    with small_home(name) as home:
        browser = hub.enter(name)
        kernel = browser.kernel(NOTEBOOK)
        answer_a_question(kernel)
        edited(browser)
        before = files_in(home / "work")
        big = fill(home)
        # What is open goes on; what cannot be saved is told, and the file stays as it was.
        with pytest.raises(Refused, match="No space left on device"):
            edited(browser, line="x = 'y'  # " + "long" * 20_000)
        assert "4" in kernel.text("print(2 + 2)")
        told = kernel.text("from lesson import predict\npredict('03.p1', 'a')")
        assert not told or "disk is full" in told
        # A server that starts has no room for an update; its first page tries again and says so.
        published(hub, lambda text: text.replace('"source": [', '"source": [\n"Newer. ",', 1))
        assert "/git-pull?" in restarted(browser)
        after = files_in(home / "work")
        assert after.pop("progress.jsonl").startswith(before.pop("progress.jsonl"))
        assert before.items() <= after.items()
        assert MINE in json.dumps(browser.open(NOTEBOOK))
        big.unlink()
        edited(browser, line="# room again")
        assert "/lab/tree/" in restarted(browser)
        assert "# room again" in json.dumps(browser.open(NOTEBOOK))
        browser.stop_server()


def test_a_killed_kernel_starts_again_and_what_was_saved_is_there(anna):
    kernel = anna.kernel(NOTEBOOK)
    answer_a_question(kernel)
    kept = lines_of(anna.name)
    edited(anna, line="# before the kernel died")
    kernel.run("x = 1")
    with pytest.raises(Refused, match="the kernel is"):
        kernel.run("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    kernel.close()
    again = anna.kernel(NOTEBOOK)
    assert again.id == kernel.id
    assert "NameError" in again.text("x")
    answer_a_question(again)
    assert lines_of(anna.name)[:-1] == kept
    assert "# before the kernel died" in json.dumps(anna.open(NOTEBOOK))
    again.close()


def test_a_killed_server_is_noticed_and_started_again(hub, anna):
    answer_a_question(anna.kernel(NOTEBOOK))
    kept = lines_of(anna.name)
    edited(anna, line="# before the server died")
    for id in processes(anna.name, "singleuser"):
        os.kill(id, signal.SIGKILL)
    until(lambda: not processes(anna.name, "ipykernel"), 30)  # no kernel stays behind
    until(lambda: not_running(anna), 90)
    anna.start_server()
    assert "# before the server died" in json.dumps(anna.open(NOTEBOOK))
    assert lines_of(anna.name) == kept
    kernel = anna.kernel(NOTEBOOK)
    assert kernel.text("print(1)") == "1\n"
    kernel.close()


def not_running(browser):
    """Has the hub noticed that a server is gone?"""
    answer = browser.request("GET", f"/hub/api/users/{browser.name}", base="/hub/")
    return not answer.json()["servers"]


def children(parent, what):
    """The ids of a process's children whose command line has ``what`` in it."""
    done = subprocess.run(["pgrep", "-P", str(parent), "-f", what], capture_output=True, text=True)
    return [int(id) for id in done.stdout.split()]


def test_a_killed_hub_leaves_the_servers_running_and_finds_them_again(hub, anna):
    kernel = anna.kernel(NOTEBOOK)
    kernel.run("x = 41")
    cullers = children(hub.process.pid, "idle_culler --timeout=3600")
    assert len(cullers) == 1
    os.kill(hub.process.pid, signal.SIGKILL)
    hub.process.wait(10)
    until(lambda: not Path(f"/proc/{cullers[0]}").exists(), 10)
    # Nobody new gets in, but whoever works goes on working.
    assert kernel.text("print(x + 1)") == "42\n"
    edited(anna, line="# while the hub was dead")
    kernel.close()
    with pytest.raises(Refused):
        Browser(hub.url, anna.name).login(hub.passwords[anna.name])
    hub.start()
    assert anna.request("GET", "/hub/home").status_code == 200  # she need not log in again
    again = anna.kernel(NOTEBOOK)
    assert again.id == kernel.id
    assert again.text("print(x)") == "41\n"
    assert "# while the hub was dead" in json.dumps(anna.open(NOTEBOOK))
    again.close()


def test_a_second_hub_is_refused_and_the_first_goes_on(hub, anna):
    done = subprocess.run(
        [sys.executable, "-B", "-m", "classroom.hub"],
        cwd=notebooks.ROOT,
        env={**os.environ, "HUB": str(hub.folder), "PORT": str(hub.port)},
        capture_output=True,
        text=True,
        timeout=30,  # a hub that is not refused would go on running
    )
    assert done.returncode and "A hub runs already" in done.stderr
    assert f"sudo kill -INT {hub.process.pid})" in done.stderr
    assert anna.open(NOTEBOOK)


def test_two_logins_of_one_student_share_one_server(hub, anna):
    at_home = hub.enter(anna.name)
    assert len(processes(anna.name, "jupyterhub-singleuser")) == 1
    first, second = anna.kernel(NOTEBOOK), at_home.kernel(NOTEBOOK)
    assert first.id == second.id
    first.run("x = 3")
    assert second.text("print(x)") == "3\n"
    edited(anna, line="# at school")
    edited(at_home, line="# at home")
    both = json.dumps(at_home.open(NOTEBOOK))
    assert "# at school" in both and "# at home" in both
    # Two notebooks, two kernels, one progress file.
    other = at_home.kernel("work/04_one_head.ipynb")
    kept = len(lines_of(anna.name))
    for _ in range(5):
        answer_a_question(first)
        answer_a_question(other)
    assert len(lines_of(anna.name)) == kept + 10
    at_home.logout()
    assert first.text("print(x)") == "3\n"
    for each in (first, second, other):
        each.close()
