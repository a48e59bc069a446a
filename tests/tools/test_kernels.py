"""A forked kernel is what a fresh one is, and turns red what a fresh one turns red."""

import json
import sys

import pytest
from jupyter_client.launcher import launch_kernel
from jupyter_client.provisioning import local_provisioner
from nbval.kernel import CURRENT_ENV_KERNEL_NAME, RunningKernel

from tools import kernels

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="kernels are forked on Linux"),
    pytest.mark.slow,  # three kernels, and two processes that fork them
]

FACTS = """import sys
project = sorted({m.partition(".")[0] for m in sys.modules} & {"helpers", "tools", "tests"})
names = sorted(set(globals()) - {"project"})
import json, os, random, threading, warnings
import matplotlib, numpy, torch, torch._dynamo
print(json.dumps({
    "project": project, "names": names, "path": sys.path, "folder": os.getcwd(),
    "environment": dict(os.environ), "threads": threading.active_count(),
    "filters": sorted(str(f) for f in warnings.filters), "session": os.getsid(0) == os.getpid(),
    "matplotlib": {k: str(v) for k, v in dict.items(matplotlib.rcParams)},
    "numpy": numpy.get_printoptions(), "torch": [
        torch.get_num_threads(), torch.is_grad_enabled(), str(torch.get_default_dtype())],
    "own": [random.random(), numpy.random.rand(), torch.rand(1).item(), os.getpid()]}))"""


def facts(tmp_path):
    running = RunningKernel(CURRENT_ENV_KERNEL_NAME, cwd=str(tmp_path))
    try:
        asked = running.execute_cell_input(FACTS)
        while (message := running.get_message("iopub", 60))["msg_type"] != "stream":
            assert message["msg_type"] != "error", message["content"]
        running.await_reply(asked, 60)
    finally:
        running.stop()
    return json.loads(message["content"]["text"])


def test_it_has_what_a_fresh_one_has_and_nothing_of_another(tmp_path, monkeypatch):
    monkeypatch.setattr(local_provisioner, "launch_kernel", kernels.launch)
    first = facts(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))  # the process that forks began without it
    second = facts(tmp_path)
    monkeypatch.setattr(local_provisioner, "launch_kernel", launch_kernel)
    fresh = facts(tmp_path)
    assert first["project"] == []
    for chances in zip(*(it.pop("own") for it in (first, second, fresh)), strict=True):
        assert len({*chances}) == 3
    for it in (first, second, fresh):
        del it["environment"]["JPY_PARENT_PID"]  # says whose child it is
    assert second == fresh and second["path"][0] == str(tmp_path)


def test_a_new_warning_of_a_package_fails(tmp_path, monkeypatch):
    """A learner would read it below the first cell."""
    (tmp_path / "ipywidgets.py").write_text("import warnings\nwarnings.warn('old')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(kernels, "parent", None)
    with pytest.raises(RuntimeError, match="imports what all kernels import"):
        kernels.launch(["ipykernel_launcher"], env={})
    kernels.stop()
