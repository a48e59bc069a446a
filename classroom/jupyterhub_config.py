"""JupyterHub's settings for a class on one machine; `classroom.hub` starts it with them."""

import os
import pwd
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlencode

from tornado.httpserver import HTTPServer

from classroom import WORK, hub_folder, hub_group
from classroom.publish import BRANCH
from classroom.theirs import PROCESSES
from tools.lab import everywhere

c = get_config()  # noqa: F821
HUB = hub_folder()
port = int(os.environ.get("PORT") or 8000)
repository = f"file://{HUB}/notebooks"
start = f"lab/tree/{WORK}/00_start_here.ipynb"

# The hub answers this machine only. README.md says how a network gets there, with TLS.
c.JupyterHub.bind_url = f"http://127.0.0.1:{port}"
c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{port + 1}"
c.JupyterHub.hub_bind_url = f"http://127.0.0.1:{port + 2}"
c.ConfigurableHTTPProxy.command = [str(HUB / "node_modules/.bin/configurable-http-proxy")]
c.JupyterHub.proxy_class = "classroom.servers.Proxy"
# Nothing that the hub is sent is longer; without this limit it keeps 100 MB of each request.
HTTPServer.configure(None, max_body_size=1_000_000)
# A hub that was killed finds its students, their cookies and its proxy again.
c.JupyterHub.db_url = f"sqlite:///{HUB}/state/jupyterhub.sqlite"
c.JupyterHub.cookie_secret_file = str(HUB / "state/cookie_secret")
c.ConfigurableHTTPProxy.pid_file = str(HUB / "state/proxy.pid")

# Who logs in: the accounts that classroom.accounts has put into the group, by their passwords.
c.JupyterHub.authenticator_class = "classroom.logins.Logins"
c.Logins.allowed_groups = {hub_group()}
c.Logins.open_sessions = False  # needs no logind, and leaves none behind

# What a student's server is.
if Path("/run/systemd/system").is_dir():
    c.JupyterHub.spawner_class = "systemd"
else:
    c.JupyterHub.spawner_class = "classroom.servers.Servers"
    # From the terminal itself a student could read what root types there.
    read, write = os.pipe()
    subprocess.Popen(["cat", "-v"], stdin=read, start_new_session=True)
    os.close(read)
    popen = {"stdin": subprocess.DEVNULL, "stdout": write, "stderr": write}
    c.LocalProcessSpawner.popen_kwargs = popen
    print(
        "systemd does not run here, so nothing limits a student's memory as a whole: each single "
        "process is limited, without what it shares with others.",
        flush=True,
    )
c.Spawner.mem_limit = "2G"
c.SystemdSpawner.unit_extra_properties = {"TasksMax": str(PROCESSES)}
c.Spawner.cmd = [
    "prlimit",
    f"--nproc={PROCESSES}",
    "sh",
    str(Path(__file__).with_name("student.sh")),
]
c.Spawner.notebook_dir = "~"
c.Spawner.default_url = f"/{start}"
c.Spawner.args = [
    *everywhere(),
    # Over TCP any account on this machine could listen to what a kernel prints.
    "--KernelManager.transport=ipc",
    # Their accounts have no shell, so that nobody logs in past the hub.
    "--ServerApp.terminado_settings={'shell_command': ['env', 'SHELL=/bin/bash', '/bin/bash']}",
]
c.Spawner.env_keep = ["PATH", "PYTHONPATH", "LANG", "LC_ALL"]
c.Spawner.environment = {
    "ATTENTION_PROGRESS": f"~/{WORK}/progress.jsonl",
    "JUPYTER_PREFER_ENV_PATH": "1",
    "JUPYTER_RUNTIME_DIR": lambda spawner: str(runtime(spawner.user.name)),
    "OMP_NUM_THREADS": "1",
    "NOTEBOOKS": repository,
    "PULL_PAGE": "/git-pull?"
    + urlencode({"repo": repository, "branch": BRANCH, "targetPath": WORK, "urlpath": start}),
    "GIT_CONFIG_SYSTEM": str(HUB / "gitconfig"),
}
# Thirty students who log in at once wait for two cores.
c.Spawner.start_timeout = 300
c.Spawner.http_timeout = 300


def runtime(name: str) -> Path:
    """Where a student's kernels have their sockets: not in a home, which may be full."""
    return HUB / "run" / name


def make_runtime(spawner) -> None:
    """Make that folder, for the student alone."""
    account = pwd.getpwnam(spawner.user.name)
    folder = runtime(spawner.user.name)
    folder.mkdir(mode=0o700, exist_ok=True)
    os.chown(folder, account.pw_uid, account.pw_gid)


c.Spawner.pre_spawn_hook = make_runtime

# A server that nobody has used for an hour ends; what is saved stays.
c.JupyterHub.load_roles = [
    {
        "name": "idle-culler",
        "scopes": ["list:users", "read:users:activity", "read:servers", "delete:servers"],
        "services": ["idle-culler"],
    }
]
culler = [sys.executable, "-m", "jupyterhub_idle_culler", "--timeout=3600"]
c.JupyterHub.services = [
    {
        "name": "idle-culler",
        # It ends with its hub, also where that is killed.
        "command": ["setpriv", "--pdeathsig=TERM", *culler],
    }
]
