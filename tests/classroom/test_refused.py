"""What a hub refuses: strangers, and students at each other's doors."""

import asyncio
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
import requests
import websocket
from systemdspawner import SystemdSpawner
from traitlets.config.loader import PyFileConfigLoader

from classroom import accounts, hub_group, left
from classroom.logins import owner
from classroom.servers import LISTENS, Proxy, Servers
from classroom.simulated import Browser, Refused, free_ports, until
from classroom.theirs import PROCESSES
from tools import notebooks


def owned_by(name):
    """The command lines of all processes of an account."""
    done = subprocess.run(["ps", "-u", name, "-o", "args="], capture_output=True, text=True)
    return done.stdout.splitlines()


def port_of(hub, name):
    """The port at which a student's own server listens, on this machine only."""
    return re.findall(rf"http://127\.0\.0\.1:(\d+)/user/{name}/", hub.said())[-1]


def test_a_wrong_password_is_refused_and_starts_nothing(hub, names):
    for name, password in [(names[1], "wrong"), (names[1], ""), ("nobody-of-that-name", "x")]:
        with pytest.raises(Refused, match=r": 403"):
            Browser(hub.url, name).login(password, patient=True)
    with pytest.raises(Refused, match="Invalid username or password"):
        Browser(hub.url, names[1]).login("wrong", patient=True)


@pytest.fixture
def account():
    """The name of an account of the machine that no hub has made; its password is right-enough."""
    name = "hub-test-outside"
    accounts.run("useradd", "--create-home", name)
    accounts.run("chpasswd", text=f"{name}:right-enough")
    yield name
    accounts.run("userdel", "--remove", "--force", name)


def test_a_right_password_outside_the_class_is_refused(hub, account):
    with pytest.raises(Refused, match=r": 403"):
        Browser(hub.url, account).login("right-enough", patient=True)


def gets_in(browser):
    """Does a browser still get from the hub to a server, without a password?"""
    answer = browser.request("GET", f"/hub/spawn/{browser.name}", base="/hub/")
    return "/hub/login" not in answer.headers.get("Location", "") and answer.status_code < 400


def test_who_is_removed_is_out_also_in_the_browser_that_was_logged_in(hub, account):
    """Removed from the group, an account that existed before stays an account of the machine."""
    student = "hub-test-removed"
    passwords = {account: "not-used-at-all", student: "the-first-one"}
    accounts.add(passwords)  # who exists keeps the password
    old = {name: Browser(hub.url, name) for name in passwords}
    old[account].login("right-enough", patient=True)
    old[student].login("the-first-one", patient=True)
    assert gets_in(old[account]) and gets_in(old[student])
    with pytest.raises(SystemExit):
        accounts.remove([student])  # while the hub runs
    assert accounts.existing(student) and gets_in(old[student])
    hub.stop()
    accounts.remove([account, student], files=True)
    accounts.add({student: "another-person"})
    try:
        hub.start()
        assert not gets_in(old[account]) and not gets_in(old[student])
        for name, password in ((account, "right-enough"), (student, "the-first-one")):
            with pytest.raises(Refused, match=r": 403"):
                Browser(hub.url, name).login(password, patient=True)
        Browser(hub.url, student).login("another-person", patient=True)
        assert accounts.existing(account)
    finally:
        hub.stop()
        accounts.remove([student], files=True)
        hub.start()


@pytest.mark.parametrize(
    "path",
    ["hub/api/users", "user/{}/api/contents", "user/{}/api/kernels", "user/{}/files/.bashrc"],
)
def test_an_anonymous_request_is_refused(hub, anna, path):
    answer = requests.get(f"{hub.url}/{path.format(anna.name)}", allow_redirects=False)
    assert answer.status_code == 403 or "/hub/api/oauth2/authorize" in answer.headers["Location"]
    assert "bashrc" not in answer.text


def test_an_anonymous_websocket_is_refused(hub, anna):
    kernel = anna.kernel("work/03_softmax_masking.ipynb")
    with pytest.raises(websocket.WebSocketBadStatusException, match="403"):
        Browser(hub.url, anna.name).websocket(f"api/kernels/{kernel.id}/channels")
    kernel.close()


def test_another_students_token_and_cookies_are_refused(hub, anna, ben):
    made = ben.request("POST", f"/hub/api/users/{ben.name}/tokens", base="/hub/", json={})
    token = {"Authorization": f"token {made.json()['token']}"}
    for at_the_door in (hub.url, f"http://127.0.0.1:{port_of(hub, anna.name)}"):
        answer = requests.get(f"{at_the_door}/user/{anna.name}/api/contents", headers=token)
        assert answer.status_code == 403
    own = requests.get(f"{hub.url}/user/{ben.name}/api/contents", headers=token)
    assert own.status_code == 200
    answer = ben.request("GET", f"/user/{anna.name}/api/contents")
    assert answer.status_code in (302, 403) and "content" not in answer.text
    answer = ben.request("DELETE", f"/hub/api/users/{anna.name}/server", base="/hub/")
    assert answer.status_code in (403, 404)
    assert owned_by(anna.name)


def test_another_students_files_and_kernels_are_closed(hub, anna, ben):
    anna.kernel("work/03_softmax_masking.ipynb").run("secret = 'of Anna'")
    kernel = ben.kernel("work/03_softmax_masking.ipynb")
    for closed in (
        f"/home/{anna.name}/work/progress.jsonl",
        f"/home/{anna.name}",
        hub.folder / "run" / anna.name,
        hub.folder / "state",
    ):
        assert "PermissionError" in kernel.text(f"import os; os.listdir('{closed}')")
        kernel.run(f"import os; os.symlink('{closed}', '/home/{ben.name}/link')")
        with pytest.raises(Refused, match=r": (403|404|500)"):
            ben.ask("GET", "contents/link")
        Path(f"/home/{ben.name}/link").unlink()
    files = list((hub.folder / "run" / anna.name).glob("kernel-*.json"))
    assert files, "Anna has a kernel"
    # Over TCP any account of the machine could read what her kernels print.
    assert {json.loads(file.read_text())["transport"] for file in files} == {"ipc"}
    kernel.close()


@pytest.mark.parametrize(
    "path", ["../../etc/passwd", "..%2f..%2fetc/passwd", "%2e%2e/%2e%2e/tmp/of-anna"]
)
def test_a_path_out_of_the_home_is_refused(anna, path):
    for method, more in [("GET", {}), ("PUT", {"json": {"type": "file", "content": "x"}})]:
        with pytest.raises(Refused, match=r": (400|403|404)"):
            anna.ask(method, f"contents/{path.replace('../', '%2e%2e%2f')}", **more)
    assert not Path("/tmp/of-anna").exists()


def test_a_process_that_takes_too_much_memory_is_told_and_goes_on(anna):
    kernel = anna.kernel("work/03_softmax_masking.ipynb")
    assert "can't allocate memory" in kernel.text("import torch; torch.zeros(10**9)")
    assert kernel.text("print(torch.zeros(10).sum().item())") == "0.0\n"
    kernel.close()


def test_memory_that_is_shared_is_not_counted(anna):
    """As the page for the teacher says; nothing of it is touched here."""
    kernel = anna.kernel("work/03_softmax_masking.ipynb")
    assert kernel.text("import mmap; print(len(mmap.mmap(-1, 3 * 10**9)))") == "3000000000\n"
    kernel.close()


def test_a_student_who_starts_processes_without_end_leaves_the_others_room(anna, ben):
    ours, theirs = (each.kernel("work/03_softmax_masking.ipynb") for each in (anna, ben))
    theirs.run("import subprocess\nstarted = []")
    try:
        told = theirs.text(
            f"while len(started) < {PROCESSES + 50}:\n"
            "    started.append(subprocess.Popen(['sleep', '60']))"
        )
        assert "BlockingIOError" in told
        assert int(theirs.text("print(len(started))")) > PROCESSES / 2  # a class has room for more
        assert ours.text("import subprocess; print(subprocess.call('true'))") == "0\n"
    finally:
        theirs.run("for each in started: each.kill(), each.wait()")
    assert theirs.text("print(subprocess.call('true'))") == "0\n"
    ours.close()
    theirs.close()


def test_where_systemd_runs_it_has_the_same_limits(monkeypatch):
    monkeypatch.setattr(Path, "is_dir", lambda path: True)
    config = PyFileConfigLoader(
        str(notebooks.ROOT / "classroom/jupyterhub_config.py")
    ).load_config()
    spawner = SystemdSpawner(config=config, user=SimpleNamespace(name="anna", id=1))
    assert config.JupyterHub.spawner_class == "systemd" and spawner.mem_limit == 2 * 2**30
    limits = {
        name: spawner._expand_user_vars(x) for name, x in spawner.unit_extra_properties.items()
    }
    assert limits == {"TasksMax": str(PROCESSES)} and f"--nproc={PROCESSES}" in spawner.cmd


def test_a_page_of_a_student_comes_from_the_address_of_the_hub(hub, anna, ben):
    """With its script, without a login: as the page for the teacher says."""
    as_student(
        accounts.existing(ben.name),
        "mkdir",
        "-p",
        *(f"/home/{ben.name}/{name}" for name in (".jupyter", "own")),
    )
    settings = Path(f"/home/{ben.name}/.jupyter/jupyter_server_config.py")
    settings.write_text(f"c.ServerApp.extra_static_paths = ['/home/{ben.name}/own']")
    Path(f"/home/{ben.name}/own/page.html").write_text("<script>1</script>")
    try:
        ben.stop_server()
        ben.start_server()
        for browser in (anna, Browser(hub.url, "nobody")):
            page = browser.request("GET", f"/user/{ben.name}/static/page.html")
            assert page.text == "<script>1</script>"
            assert page.headers["Content-Type"].startswith("text/html")
            assert not re.search("sandbox|script-src", page.headers["Content-Security-Policy"])
    finally:
        settings.unlink()
        ben.stop_server()


def test_what_students_run_they_cannot_change(hub, ben):
    kernel = ben.kernel("work/03_softmax_masking.ipynb")
    for path in ("project/helpers/__init__.py", "notebooks/x", "venv/bin/x", "x"):
        assert "PermissionError" in kernel.text(f"open('{hub.folder}/{path}', 'a')")
    kernel.close()


def test_ps_shows_the_commands_of_others_unless_the_machine_hides_them(anna, ben):
    """And never what their environment holds: the token with which a server speaks to the hub."""
    mounts = Path("/proc/mounts").read_text().splitlines()
    options = next(line.split()[3] for line in mounts if line.split()[1:3] == ["/proc", "proc"])
    hidden = "hidepid=" in options and not re.search("hidepid=(0|off)", options)
    theirs = accounts.existing(anna.name).pw_uid
    kernel = ben.kernel("work/03_softmax_masking.ipynb")
    kernel.run("import subprocess")
    said = kernel.text("print(subprocess.getoutput('ps -ww -eo uid,args'))")
    seen = [line for line in said.splitlines() if line.split()[0] == str(theirs)]
    assert any("jupyterhub-singleuser" in line for line in seen) == (not hidden)
    assert "JUPYTERHUB_API_TOKEN" not in said
    server = processes_of(anna.name)[0]
    told = kernel.text(f"open('/proc/{server}/environ').read()")
    assert "PermissionError" in told or "FileNotFoundError" in told
    kernel.close()


def processes_of(name):
    """The ids of an account's processes."""
    done = subprocess.run(["pgrep", "-u", name], capture_output=True, text=True)
    return done.stdout.split()


def test_homes_are_closed_and_accounts_have_no_shell_but_in_the_hub(anna, names):
    assert all(Path(f"/home/{name}").stat().st_mode & 0o777 == 0o700 for name in names)
    assert accounts.existing(anna.name).pw_shell == accounts.NO_SHELL
    terminal = anna.ask("POST", "terminals")["name"]
    socket = anna.websocket(f"terminals/websocket/{terminal}")
    socket.send(json.dumps(["stdin", "echo $((40 + 2)) in $SHELL\r"]))
    said = ""
    while "42 in /bin/bash" not in said:
        said += str(json.loads(socket.recv())[-1])
    socket.close()
    anna.ask("DELETE", f"terminals/{terminal}")


def test_a_removed_account_leaves_nothing_behind(hub, monkeypatch, tmp_path):
    monkeypatch.setenv("HUB", str(tmp_path))  # no hub runs from there
    accounts.add({"hub-test-gone": "any-password"})
    home, sockets = Path("/home/hub-test-gone"), tmp_path / "run/hub-test-gone"
    try:
        assert home.stat().st_mode & 0o777 == 0o700
        left_behind = subprocess.Popen(["sleep", "1000"], user="hub-test-gone")
        sockets.mkdir(parents=True)
        accounts.remove(["hub-test-gone"])
        assert not accounts.existing("hub-test-gone")
        assert not home.exists() and not sockets.exists()
        assert left_behind.wait(10)
    finally:
        shutil.rmtree(home, ignore_errors=True)
        accounts.run("groupdel", hub_group())


@pytest.fixture
def leaving(monkeypatch, tmp_path):
    """An account of a hub that does not run, which has left files where all may write."""
    monkeypatch.setenv("HUB", str(tmp_path))
    name = "hub-test-leaving"
    accounts.add({name: "any-password"})
    account = accounts.existing(name)
    folders = [Path(tempfile.mkdtemp(dir=where)) for where in ("/tmp", "/dev/shm", "/var/tmp")]
    folders.append(Path(tempfile.mkdtemp(dir="/opt")))
    for folder in folders:
        folder.chmod(0o1777)
    yield account, folders
    if accounts.existing(name):
        accounts.run("userdel", "--remove", "--force", name)
    accounts.run("groupdel", hub_group())
    for folder in folders:
        shutil.rmtree(folder)


def as_student(account, *command):
    subprocess.run(command, check=True, user=account.pw_uid, group=account.pw_gid, cwd="/")


def test_what_a_student_left_in_open_folders_is_told_and_removed_on_request(
    leaving, monkeypatch, tmp_path, capsys
):
    account, folders = leaving
    kept, mine = tmp_path / "kept", []
    kept.mkdir()
    (kept / "of root").write_text("kept")
    for folder in folders:
        as_student(account, "mkdir", "-p", f"{folder}/a b/-c")
        as_student(account, "touch", f"{folder}/a b/-c/new\nline")
        as_student(account, "mkfifo", f"{folder}/pipe")
        as_student(account, "ln", "-s", str(kept), f"{folder}/link")
        (folder / "of root").write_text("kept")
        (folder / "link to theirs").symlink_to(folder / "pipe")
        mine += [folder / "a b", folder / "pipe", folder / "link"]
    capsys.readouterr()
    with pytest.raises(SystemExit), monkeypatch.context() as patch:
        patch.setattr(left, "SECONDS", 0.001)
        accounts.remove([account.pw_name])
    assert "There may be more" in (said := capsys.readouterr()).out and "nobody was" in said.err
    with pytest.raises(SystemExit):
        accounts.remove([account.pw_name])
    said = capsys.readouterr()
    assert "20 files outside of the home" in said.out and "and 17 more" in said.out
    assert "new?line" in said.out and "FILES=1" in said.err and "nobody was removed" in said.err
    assert accounts.existing(account.pw_name) and Path(account.pw_dir).exists()
    assert all(path.is_symlink() or path.exists() for path in mine)
    accounts.remove([account.pw_name], files=True)
    said = capsys.readouterr().out
    assert "20 files outside of the home removed" in said and "could not be removed" not in said
    assert not any(path.is_symlink() or path.exists() for path in mine)
    assert not accounts.existing(account.pw_name)
    for folder in folders:
        assert (folder / "of root").read_text() == "kept"
        assert (folder / "link to theirs").is_symlink()
    assert (kept / "of root").read_text() == "kept"


def test_files_are_left_where_that_is_wanted_or_the_student_could_not_remove_them(leaving, capsys):
    account, folders = leaving
    as_student(account, "touch", f"{folders[0]}/x")
    as_student(account, "mkdir", f"{folders[1]}/theirs")
    (folders[1] / "theirs/of root").write_text("kept")
    folders[0].chmod(0o755)  # closed by now, as a swapped folder would be
    (folders[2] / "open").mkdir()
    (folders[2] / "open").chmod(0o777)
    accounts.outside({account.pw_name: account}, files=True)
    said = capsys.readouterr().out
    assert "2 files outside" in said and "could not be removed" in said
    assert (folders[1] / "theirs/of root").read_text() == "kept"
    as_student(account, "touch", f"{folders[2]}/open/y")
    accounts.remove([account.pw_name], files=False)
    assert (folders[2] / "open/y").exists() and not accounts.existing(account.pw_name)


def test_what_is_found_is_removed_with_the_rights_of_the_student(leaving, tmp_path):
    """Between search and removal another student can put a link in place of a folder."""
    account, _ = leaving
    (tmp_path / "of root").write_text("kept")
    left.remove(account, [bytes(tmp_path / "of root")])
    assert (tmp_path / "of root").read_text() == "kept"


def test_two_hubs_of_a_machine_have_classes_of_their_own(hub, names, monkeypatch, tmp_path):
    assert accounts.members() == sorted(names)
    monkeypatch.setenv("HUB", str(tmp_path))
    assert accounts.members() == []
    accounts.remove(names)  # made for the other hub
    assert all(accounts.existing(name) for name in names)
    assert hub.enter(names[0])


def test_a_server_has_no_way_to_the_terminal_of_root(anna):
    """There a student could read the next password, or write what a terminal obeys."""
    for process in processes_of(anna.name):
        files = [os.readlink(f"/proc/{process}/fd/{number}") for number in (0, 1, 2)]
        if b"jupyterhub-singleuser" in Path(f"/proc/{process}/cmdline").read_bytes():
            assert files[0] == "/dev/null" and files[1].startswith("pipe:")
            assert files[1] == files[2]
            return
    raise AssertionError("Anna has no server")


def test_no_debugger_listens_where_all_accounts_can_ask_it(anna):
    kernel = anna.kernel("work/03_softmax_masking.ipynb")
    assert "ModuleNotFoundError" in kernel.text("import debugpy")
    kernel.close()


def test_a_long_login_is_refused_before_it_is_read(hub):
    line = http.client.HTTPConnection("127.0.0.1", hub.port, timeout=5)
    line.putrequest("POST", "/hub/login")
    line.putheader("Content-Length", "95000000")
    line.endheaders(b"username=")
    assert line.getresponse().status == 400
    line.close()


@pytest.mark.parametrize(("user", "there"), [(0, False), ("nobody", True)])
def test_a_process_that_has_the_number_of_an_old_server_is_not_killed(user, there):
    process = subprocess.Popen(["sleep", "60"], user=user)
    server = Servers(user=SimpleNamespace(name="nobody"), pid=process.pid)
    try:
        assert asyncio.run(server._signal(signal.SIGKILL)) == there
        if there:
            assert process.wait(5)
        assert (process.poll() is None) != there
        process.kill()
        process.wait()
        assert not asyncio.run(server._signal(0))
    finally:
        process.kill()
        process.wait()


SQUATTER = """\
import http.server
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("X-JupyterHub-Version", "6")
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", {}), Answer).serve_forever()"""


@pytest.mark.parametrize("who", ["anna", "ben"])
def test_the_address_of_a_student_leads_to_no_other_student(who, hub, anna, ben):
    uid, port = accounts.existing((anna if who == "anna" else ben).name).pw_uid, free_ports()
    squatter = subprocess.Popen([sys.executable, "-c", SQUATTER.format(port)], user=uid, cwd="/")
    server = SimpleNamespace(ip="127.0.0.1", port=port, host=f"http://127.0.0.1:{port}")
    spawner = SimpleNamespace(server=server, pending="spawn", proxy_spec="/user/", _log_name="")
    user, led = SimpleNamespace(name=ben.name, spawners={"": spawner}), []

    class Led(Proxy):
        async def add_route(self, *route):
            led.append(route)

    try:
        until(lambda: owner(("127.0.0.1", port), LISTENS) == uid, 10)
        proxy = Led.__new__(Led)
        if who == "ben":
            asyncio.run(proxy.add_user(user))
        else:
            with pytest.raises(RuntimeError, match=f"account {uid} listens at port {port}"):
                asyncio.run(proxy.add_user(user))
        assert len(led) == (who == "ben")
    finally:
        squatter.kill()
        squatter.wait()
