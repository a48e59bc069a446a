"""`attention-clinic` and `assert_healthy`, on code as others write it."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
import torch
from torch import nn

from attention_clinic import assert_healthy, child, command
from helpers.attention import Block, MultiHeadAttention
from tests.attention_clinic.designs import others_broken, others_right
from tests.installed import RIGHT_ATTENTION
from tests.told import Told

ROOT = Path(__file__).parents[2]
RIGHT, BROKEN = Path(others_right.__file__), Path(others_broken.__file__)
# The first lines of a file of theirs.
OURS = "from torch import nn\nfrom helpers.attention import MultiHeadAttention\n"


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Write files into a folder, and run the command there: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def run(target, *more, C=32, files=None):
        for name, text in (files or {}).items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        code = command.main([str(target), "--C", str(C), *more], child.answer)
        return code, *capsys.readouterr()

    return run


# ---------------------------------------------------------------- ten modules, and exit codes


@pytest.mark.parametrize(
    ("target", "more", "C", "code", "told"),
    [
        (f"{RIGHT}:CausalSelfAttention", ["--n-head=4"], 64, 0, "GPTConfig(n_head=4, n_embd=64)"),
        (f"{RIGHT}:LoRAAttention", ["--n-head=2"], 64, 0, "made as LoRAAttention(dim=64, heads=2)"),
        (f"{RIGHT}:QKNormAttention", [], 48, 2, "DIFFERENT: QK-norm (Henry et al. 2020)"),
        (f"{RIGHT}:LatentAttention", ["--arg=kv_rank=8", "--example=3,1"], 48, 4, "kv_rank=8"),
        (f"{BROKEN}:ScaleC", ["--n-head=4"], 64, 1, "BROKEN: divided by √C."),
        (f"{BROKEN}:WrongCorner", ["--n-head=4"], 32, 1, "BROKEN: no mask."),
        (f"{BROKEN}:MissingResidual", [], 32, 1, "no residual connection around the feed-forward"),
        (f"{BROKEN}:GoodAttention", ["--n-head=4"], 32, 0, "made as GoodAttention(c=32, h=4)"),
        ("torch.nn:MultiheadAttention", ["--n-head=4"], 32, 0, "(embed_dim=32, num_heads=4)"),
        ("helpers.attention:Block", ["--n-head=4"], 32, 0, "Block(C=32, n_head=4)"),
        (f"{RIGHT}:LoRAAttention", ["--no-causal"], 32, 1, "unwanted causal mask"),
    ],
    ids=lambda value: Path(value).name if isinstance(value, str) else None,
)
def test_the_verdict_is_the_exit_code(run, target, more, C, code, told, snapshot):
    got, out, err = run(target, *more, C=C)
    assert (got, err) == (code, "") and told in out
    assert out == snapshot.use_extension(Told)


HALF = """
from torch import nn
class Half(nn.Module):
    def __init__(self, C, n_head):
        super().__init__()
        self.n_head = n_head
        self.query, self.key, self.value = (nn.Linear(C, C) for _ in range(3))
    def forward(self, x):
        q, k, v = (f(x).view(*x.shape[:2], self.n_head, -1).transpose(1, 2)
                   for f in (self.query, self.key, self.value))
        scores = q @ k.mT / self.root()
        return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
    def root(self):
        return 2
class OfHeads(Half):
    def root(self):
        return self.n_head ** 0.5
class Head(Half):
    def __init__(self, C, head_size):
        super().__init__(C, 1)
        self.query, self.key, self.value = (nn.Linear(C, head_size) for _ in range(3))
    def root(self):
        return self.query.out_features ** 0.5
class Pooled(Half):
    def forward(self, x):
        return super().forward(x).mean(1)
"""


@pytest.mark.parametrize(
    ("name", "code", "told"),
    [
        ("Half", 2, "n_head=2), as with 4 heads √n_head could be another number"),
        ("OfHeads", 1, "n_head=4), run on"),
        ("Head", 0, "made as Head(C=64, head_size=16), one head, run on"),
        ("Pooled", 3, "one output for a whole text, as a pooling does"),
    ],
)
def test_what_the_number_of_heads_decides(run, name, code, told):
    files = {"half.py": HALF}
    got, *said = run(f"half.py:{name}", "--n-head=4", "--no-causal", C=64, files=files)
    assert got == code and told in "".join(said)


def test_json_is_one_object_whatever_the_file_prints(run):
    text = f"print('hello')\n{OURS}made = MultiHeadAttention(32, 4)\n"
    code, out, err = run("loud.py:made", "--json", "--example=2,5", files={"loud.py": text})
    told = json.loads(out)
    assert code == 0 and err == "hello\n"
    assert told["status"] == "healthy" and told["bugs"] == [] and told["example"] == [2, 5, 32]
    assert told["made_as"] == "made, called as it is" and not told["error"]
    assert {"name", "ok", "evidence"} == told["findings"][0].keys()
    keys, (code, out, err) = [*told], run("nowhere.py:made", "--json")
    assert [*json.loads(out)] == keys and {"not_checked", "different", "notes"} <= {*keys}
    assert code == 3 and json.loads(out)["status"] == "could not run" and not err
    assert json.loads(out)["error"] == "There is no file nowhere.py."


SCRIPT = f"""
from __future__ import annotations
import argparse
from dataclasses import dataclass
{OURS}
argparse.ArgumentParser().parse_args()  # reads sys.argv

@dataclass
class OtherConfig:
    size: int

@dataclass
class SizesConfig:
    d_in: int
    d_out: int
    num_heads: int
    bias: bool = False

class Attention(MultiHeadAttention):
    def __init__(self, cfg: SizesConfig):
        assert cfg.d_in == cfg.d_out and cfg.bias
        super().__init__(cfg.d_in, cfg.num_heads)
"""


def test_a_class_is_made_with_the_config_of_its_annotation(run):
    files = {"script.py": SCRIPT}
    code, out, err = run("script.py:Attention", "--n-head=4", "--arg=bias=True", files=files)
    assert code == 0, err
    made = "made as Attention(cfg=SizesConfig(d_in=32, d_out=32, num_heads=4, bias=True)), run on x"
    assert out.startswith(made)
    assert (
        "bias='as it likes'"
        in run("script.py:Attention", "--n-head=4", "--arg=bias=as it likes")[1]
    )
    told = "SizesConfig wants num_heads as well. Add, for example, --n-head 4."
    assert told in run("script.py:Attention")[2]


LIKE_PACKAGES = f"""
from dataclasses import dataclass
{OURS}
@dataclass
class TextConfig:
    d_model: int = 768
    encoder_attention_heads: int = 12
    decoder_attention_heads: int = 12
    num_key_value_heads: int = 8
    decay: float = 0.5
    _attn_implementation: str = "sdpa"
class TrainConfig: lr = 0.1
@dataclass
class StagesConfig(TrainConfig):
    hidden_size: int = 768
    num_heads: tuple = (3, 6)
    head_dim: int | None = None

class Encoder(MultiHeadAttention):
    def __init__(self, C, n_head, config: TextConfig | None = None):
        assert (config.d_model, config._attn_implementation) == (C, "eager")
        super().__init__(C, config.encoder_attention_heads)

class Decoder(MultiHeadAttention):
    def __init__(self, config: "TextConfig | None", layer_idx=None):
        assert (config.num_key_value_heads, layer_idx) == (4, 0)
        super().__init__(config.d_model, config.decoder_attention_heads)

class Stages(MultiHeadAttention):
    def __init__(self, config: StagesConfig, num_heads):
        assert (config.num_heads, config.head_dim) == ((3, 6), 8)
        super().__init__(config.hidden_size, num_heads)

class Unsaid(MultiHeadAttention):
    def __init__(self, config):
        assert (config.decay, config.layer_norm_eps, config.qkv_bias) == (0.5, 1e-5, False)
        super().__init__(config.hidden_size, config.num_attention_heads)
class OfTheWhole(Unsaid):
    def __init__(self, config: TrainConfig): super().__init__(config)

class Layers(nn.Sequential):
    def __init__(self, dim, heads, mlp_dim, depth, norm_layer, act_layer, drop):
        assert (mlp_dim, depth, norm_layer, act_layer, drop) == (128, 2, nn.LayerNorm, nn.GELU, 0)
        super().__init__(MultiHeadAttention(dim, heads))
class HandsOn(Layers):
    def __init__(self, **more): super().__init__(**more)
class Fixed(Layers):
    def __init__(self, *rest, **more): super().__init__(dim=32, heads=4, **more)
class Text(Layers):
    def __init__(self, attention_type, how: str, flat: bool, rate: float, depths): pass
"""


@pytest.mark.parametrize("name", re.findall(r"class (\w+)\((?:Mult|nn|U|L)", LIKE_PACKAGES))
def test_classes_as_in_packages_are_made(run, name):
    code, out, err = run(f"like.py:{name}", "--n-head=4", files={"like.py": LIKE_PACKAGES})
    added = (
        "attention_type=TEXT --arg how=TEXT --arg flat=True --arg rate=0.1 --arg depths=16, where"
    )
    assert code == 0 or (name == "Text" and added in err), err + out


def test_of_a_function_not_all_is_checked_which_is_no_green_light(run):
    text = "def mean(x):\n    return x.cumsum(1)\n"
    code, out, _ = run("means.py:mean", files={"means.py": text})
    assert code == 4 and "INCOMPLETE" in out and "○ equals the reference" in out


# ---------------------------------------------------------------- where a file stands


def test_a_file_is_imported_as_python_would(run):
    sizes, made = "HEADS = 4\n", f"{OURS}made = MultiHeadAttention(32, HEADS)\n"
    files = {
        "beside/sizes_of_mine.py": sizes,
        "beside/a-model.py": f"from sizes_of_mine import *\n{made}",
    }
    assert run("beside/a-model.py:made", files=files)[0] == 0
    package = {"lib/pack_of_mine/__init__.py": "", "lib/pack_of_mine/sub/__init__.py": ""}
    package["lib/pack_of_mine/sizes.py"] = sizes
    package["lib/pack_of_mine/sub/model.py"] = f"from ..sizes import *\n{made}"
    assert run("lib/pack_of_mine/sub/model.py:made", files=package)[0] == 0
    alone = {"loose/model.py": f"from .sizes import *\n{made}", "loose/sizes.py": sizes}
    code, _, err = run("loose/model.py:made", files=alone)
    assert code == 3 and "no __init__.py: name it as package.module:Class" in err
    assert run("loose.model:made")[0] == 0


def test_the_folder_one_stands_in_is_importable_behind_the_file_s_own(run):
    """As Python does it: first the folder of a script, and with -m the current one."""
    text = f"from tool_of_mine import HEADS\n{OURS}made = MultiHeadAttention(32, HEADS)\n"
    files = {"scripts/model.py": text, "tool_of_mine.py": "HEADS = 4\n"}
    assert run("scripts/model.py:made", "--n-head=4", files=files)[0] == 0
    files = {"other/model.py": text.replace("tool", "both"), "other/both_of_mine.py": "HEADS = 2\n"}
    files["both_of_mine.py"] = "HEADS = 4\n"
    assert run("other/model.py:made", "--n-head=2", files=files)[0] == 0


OWN = {
    "helpers/__init__.py": "",
    "helpers/parts.py": "HEADS = 4\n",
    "helpers/attention.py": "from .parts import HEADS\n" + RIGHT.read_text(),
    "model.py": """
from helpers.attention import LoRAAttention
class Lazy(LoRAAttention):
    def forward(self, x):
        from helpers.parts import HEADS
        assert HEADS == self.heads
        return super().forward(x)
""",
}


def started(folder, *words, **more):
    """Start a process in a folder where this project is found as after `pip install -e .`"""
    finder = f"import sys; sys.path.append({str(ROOT)!r}); "
    return subprocess.run(
        [sys.executable, "-P", "-c", finder + words[0], *words[1:]],
        cwd=folder,
        env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
def test_the_script_runs_in_a_folder_with_helpers_of_its_own(tmp_path):
    for name, text in OWN.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    module, _, function = scripts["attention-clinic"].partition(":")
    script = f"from {module} import {function}; sys.exit({function}())"  # as pip writes it
    done = started(tmp_path, script, "model.py:Lazy", "--C", "32", "--n-head", "4")
    assert (done.returncode, done.stderr) == (0, "") and "HEALTHY" in done.stdout
    as_module = "import runpy; runpy.run_module('attention_clinic', run_name='__main__')"
    done = started(tmp_path, as_module, "model.py:Lazy", "--C", "32")
    assert (done.returncode, done.stderr) == (0, "") and "HEALTHY" in done.stdout


@pytest.mark.slow  # two processes
def test_python_m_starts_it(tmp_path):
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-m", "attention_clinic", f"{BROKEN}:ScaleC", "--C=32", "--n-head=4"]
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "") and "divided by √C" in done.stdout
    read_no_more = subprocess.Popen(words, cwd=tmp_path, env=environment, stdout=-1, stderr=-1)
    read_no_more.stdout.close()
    assert read_no_more.wait() == 1 and not read_no_more.stderr.read()


# ---------------------------------------------------------------- what cannot run

BAD = f"""{OURS}
class Attention(MultiHeadAttention):
    def __init__(self, d_model, block_size, dropout: float, *, num_heads):
        if block_size > 99:
            raise ValueError("block_size too large")
        super().__init__(d_model, num_heads)

class FromDict(nn.Module):
    def __init__(self, cfg): pass

class Asks(nn.Module):
    def forward(self, query, words, value): return query

class Raises(nn.Module):
    def forward(self, x):
        raise KeyError("no such thing")

class Words(nn.Module):
    def __init__(self): super().__init__(); self.words = nn.Embedding(9, 32)
    def forward(self, x): return self.words(x)

class Lacking(nn.Module):
    def forward(self, x): from not_there.layers import rearrange

class Older(nn.Module):
    def forward(self, x): from json.layers import rearrange

class Leaves(nn.Module):
    def forward(self, x): raise SystemExit

class Stop(BaseException): pass
class Stopping(nn.Module):
    def forward(self, x): raise Stop("enough")

class Property(nn.Module):
    @property
    def n_head(self): raise RuntimeError("not yet")

def nothing(): pass
def counts(x): return 3
import torch
number = 3
class Reads(MultiHeadAttention):
    def __init__(self, config): super().__init__(config.d_model, config.novel)
small = MultiHeadAttention(16, 4)
mlp = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 32))
"""
NOT_THERE = "No module named 'not_there'"
LACKING = (
    f"The clinic runs in {sys.executable}, which has no not_there: run python -m attention_clinic "
    f"in the environment of your model, after pip install {ROOT / 'attention_clinic'} there, or"
)


@pytest.mark.parametrize(
    ("target", "more", "told"),
    [
        ("nowhere.py:Attention", [], "There is no file nowhere.py."),
        ("nowhere_at_all:Attention", [], "No module named 'nowhere_at_all'"),
        ("not a module:Attention", [], "neither a file nor a module"),
        ("bad.py", [], "Leaves, Stop, Stopping, Property, nothing, counts, Reads, small and mlp."),
        ("bad.py:Attending", [], "bad.py has no Attending: did you mean Attention?"),
        ("bad.py:Attention", [], "wants num_heads as well. Add, for example, --n-head 4. You can"),
        ("bad.py:FromDict", [], "FromDict is no module yet: call super().__init__() first in its"),
        ("bad.py:Attention", ["--arg=drpout=1"], "takes no argument drpout: did you mean dropout?"),
        ("bad.py:Attention", ["--arg=dropout"], "--arg takes NAME=VALUE"),
        ("bad.py:Attention", ["--arg=mask=true"], "Python writes True"),
        (
            "bad.py:Attention",
            ["--arg=block_size=100", "--arg=dropout=0", "--n-head=4"],
            "cannot be made: bad.py:7: ValueError: block_size too large",
        ),
        ("bad.py:Asks", [], "Asks takes query, words and value, and is given one x (B, T, C)."),
        ("bad.py:Raises", [], "bad.py:18: on x (3, 8, 32) it raises KeyError: 'no such thing'"),
        ("bad.py:Words", [], "It looks up token numbers in an embedding"),
        ("bad.py:Lacking", [], f"”. {LACKING}"),
        ("bad.py:Older", [], f"The clinic runs in {sys.executable}, which has no json.layers: "),
        ("bad.py:Leaves", [], "Leaves()): bad.py:31: it ends the program.\n"),
        ("bad.py:Stopping", [], "bad.py:35: Stop: enough"),
        ("bad.py:Property", [], "Could not run. Property: bad.py:39: RuntimeError: not yet"),
        ("bad.py:torch", [], "torch is the module <module 'torch' from …, which cannot be called"),
        ("bad.py:counts", [], "Expected out or (out, weights), of floats, got int."),
        ("bad.py:nothing", [], "nothing takes no input"),
        ("bad.py:Reads", [], "it reads novel of its configuration: add --arg novel=16"),
        ("bad.py:number", [], "number is the int 3, which cannot be called"),
        ("bad.py:small", [], "reads C = 16 channels, but it was given C = 32"),
        ("bad.py:small", ["--n-head=2"], "The module has 4 heads"),
        ("bad.py:small", ["--arg=dropout=0"], "--arg is for a class, and small is made already"),
        ("bad.py:mlp", [], "It mixes no tokens at all: is it an attention?"),
        ("bad.py:mlp", ["--example=3"], "takes two numbers, such as 4,16; got 3"),
        ("bad.py:mlp", ["--n-head=0"], "--n-head must be at least 1, got 0."),
        ("bad.py:mlp", ["--head=2"], "unrecognized arguments: --head=2"),
        ("syntax.py:mlp", [], "syntax.py:2: SyntaxError: "),
        ("raising.py:mlp", [], "raising.py cannot be imported: raising.py:2: OSError: no disk"),
        ("bad.py:mlp", ["--timeout=0"], "takes seconds, from 0.1 to 86400; got 0."),
        ("lacking.py:mlp", [], f"lacking.py:1: ModuleNotFoundError: {NOT_THERE}. {LACKING}"),
        ("ending.py:mlp", [], "ending.py:2: it ends the program. In a file that"),
    ],
)
def test_what_cannot_run_is_told_in_one_line(run, target, more, told):
    files = {
        "bad.py": BAD,
        "syntax.py": "\nclass mlp\n",
        "raising.py": "def disk(): pass\nraise OSError('no disk')\n",
        "lacking.py": "import not_there\n",
        "ending.py": "import sys\nsys.exit(0)\n",
    }
    code, out, err = run(target, *more, files=files)
    assert (code, out) == (3, "") and told in err
    assert err.count("\n") == 1 and "Traceback" not in err


def test_what_is_stopped_says_nothing(run):
    text = "raise KeyboardInterrupt\n"
    assert run("stopped.py:A", files={"stopped.py": text}) == (130, "", "")


def test_a_fault_of_ours_says_that_it_is_one(run, monkeypatch):
    monkeypatch.setattr(child, "random_example", None)
    text = f"{OURS}class A(MultiHeadAttention): pass\n"
    files = {"fine.py": text}
    code, out, err = run("fine.py:A", "--n-head=4", files=files)
    assert (code, out) == (3, "") and err.count("\n") == 1
    assert "This is a fault of the clinic, not of your module. Please report it" in err
    assert re.search(r"child.py:\d+: TypeError: 'NoneType' object is not callable$", err)
    code, out, err = run("fine.py:A", "--n-head=4", "--json")
    assert (code, err) == (3, "") and "fault of the clinic" in json.loads(out)["error"]


# ---------------------------------------------------------------- the process that runs their code

ENDING = f"""{RIGHT_ATTENTION}import atexit, os, signal, sys, threading, time

class Loops(Right):
    def forward(self, x):
        while True:
            try:
                time.sleep(0.01)
            except BaseException:
                pass
class Sleeps(Right):
    def __init__(self, C, n_head): time.sleep(1000)
class Exits(Right):
    def forward(self, x): print("HEALTHY: all 12 probes ran and passed.", flush=True); os._exit(0)
class Killed(Right):
    def __init__(self, C, n_head): os.kill(os.getpid(), signal.SIGKILL)
class Crashes(Right):
    def forward(self, x): import ctypes; ctypes.string_at(0)
class Wrong(Right):
    def __init__(self, C, n_head):
        super().__init__(C, n_head)
        os.write(1, b"HEALTHY: all 12 probes ran and passed.\\n")
        sys.stdout = open(os.devnull, "w")
        threading.Thread(target=sys.exit, args=[0]).start()
        threading.Thread(target=time.sleep, args=[1000]).start()
        atexit.register(os._exit, 0)
    def forward(self, x): return self.inner(x, x, x)[0]
"""
IN_C = """
from torch import nn
def train():
    return sum(range(10**12))  # in C all the time
train()
"""
SHADOWS = ("argparse", "json", "typing", "signal", "torch", "numpy", "attention_base")


def commanded(folder, *words, **more):
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-m", "attention_clinic", *words, "--C=32", "--n-head=4"]
    more = {"stdout": -1, "stderr": -1, "preexec_fn": heeds_ctrl_c} | more
    return subprocess.Popen(words, cwd=folder, env=environment, text=True, **more)


def heeds_ctrl_c():
    """As at a terminal: what a shell starts in the background ignores it, with all children."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.mark.slow  # a process each
@pytest.mark.parametrize(
    ("target", "code", "told"),
    [
        ("ending.py:Loops", 3, "py:17: after 1 s this is still running: “time.sleep(0.01)”. Name"),
        ("ending.py:Sleeps", 3, "Sleeps(C=32, n_head=4) cannot be made: ending.py:21: after 1 s"),
        ("ending.py:Exits", 3, "n_head=4)): it ends Python, with exit code 0, before there is"),
        ("ending.py:Killed", 3, "cannot be made: it ends Python, with SIGKILL, as when no memory"),
        ("ending.py:Crashes", 3, "ending.py:27: it ends Python, with SIGSEGV"),
        ("ending.py:Wrong", 1, "no mask"),
        ("in_ç.py:A", 3, "in_ç.py:4: after 1 s this is still running: “return sum(range(10**12))"),
        ("gone.py:A", 3, "gone.py cannot be imported: it ends Python, with exit code 0"),
        ("loads.py:A", 3, "“from slow_package import A”. If only loading takes so long, raise"),
    ],
)
def test_what_ends_python_or_never_ends_is_no_pass(tmp_path, target, code, told):
    files = {"ending.py": ENDING, "in_ç.py": IN_C, "gone.py": "import os\nos._exit(0)\n"}
    files["loads.py"] = "import sys\nsys.path.append('site-packages')\nfrom slow_package import A\n"
    files["site-packages/slow_package.py"] = "import time\ntime.sleep(1000)\n"
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    with commanded(tmp_path, target, "--timeout=1", "--json") as process:
        out, _ = process.communicate(timeout=60)
    report = json.loads(out)
    assert process.returncode == code
    assert told in (report["error"] if code == 3 else report["bugs"])
    if code == 3 and "raise --timeout" in report["error"]:
        assert ("below if __name__" in report["error"]) == target.startswith("in_ç.py")


@pytest.mark.slow
def test_files_named_as_those_of_python_do_not_stop_it(tmp_path):
    (tmp_path / "ending.py").write_text(ENDING)
    for name in SHADOWS:
        (tmp_path / f"{name}.py").write_text("raise SystemExit(f'{__file__} is in the way')")
    with commanded(tmp_path, "ending.py:Right") as process:
        out, err = process.communicate()
    assert (process.returncode, err) == (0, "") and "HEALTHY" in out


@pytest.mark.slow
def test_a_report_that_cannot_be_written_is_no_pass(tmp_path):
    (tmp_path / "ending.py").write_text(ENDING)
    with open("/dev/full", "w") as full, commanded(tmp_path, "ending.py:Right", stdout=full) as one:
        _, err = one.communicate()
    assert one.returncode == 3 and "The report cannot be written" in err


@pytest.mark.slow
def test_once_it_is_stopped_nothing_runs_on(tmp_path):
    text = "import os\nopen('pid', 'w').write(str(os.getpid()))\nwhile True: pass\n"
    for stop, seconds, code in ((signal.SIGINT, 60, 130), (signal.SIGKILL, 2, -signal.SIGKILL)):
        (tmp_path / "stopped.py").write_text(text)
        (tmp_path / "pid").write_text("")
        with commanded(tmp_path, "stopped.py:A", f"--timeout={seconds}") as process:
            until(lambda: (tmp_path / "pid").read_text())
            process.send_signal(stop)
            assert process.wait(10) == code and not process.stdout.read()
        child_pid = (tmp_path / "pid").read_text()
        until(lambda pid=child_pid: not Path(f"/proc/{pid}").exists())


def until(holds):
    for _ in range(300):
        if holds():
            return
        time.sleep(0.1)
    raise AssertionError("it took more than 30 s")


def test_the_process_that_decides_runs_without_torch_and_knows_its_version():
    text = "import sys, attention_clinic.command as c; assert 'torch' not in sys.modules; c.main()"
    done = started(ROOT, text, "--version")
    changes = (ROOT / "attention_clinic/CHANGELOG.md").read_text()
    version = re.search(r"^## (\S+)", changes, re.M)[1]
    assert (done.returncode, done.stdout) == (0, f"attention-clinic {version}\n"), done.stderr


# ---------------------------------------------------------------- in a test of theirs


def test_assert_healthy_fails_with_the_report_and_what_to_allow():
    assert assert_healthy(Block(32, 4), C=32) is None
    with pytest.raises(AssertionError, match=r"^BROKEN: divided by √C.") as failed:
        assert_healthy(
            others_broken.ScaleC(), C=32, allow=["divided by √C", "equals the reference"]
        )
    assert failed.traceback.filter(failed)[-1].path == Path(__file__)
    names = ("equals the reference", "rows sum to 1", "no weight on the future")
    with pytest.raises(
        AssertionError, match=r"^DIFFERENT: [^$]*To let this pass: allow="
    ) as failed:
        assert_healthy(others_right.DiffAttention(), C=32, allow=names[1:])
    assert str(failed.value).endswith(f"allow={names}")
    assert_healthy(others_right.DiffAttention(), C=32, allow=names)
    with pytest.raises(AssertionError, match=r"^INCOMPLETE: "):
        assert_healthy(lambda x: x.cumsum(1), C=32, example=torch.randn(2, 5, 32))
    with pytest.raises(AssertionError, match=r"Raised in .*test_command.py:\d+$"):
        assert_healthy(lambda x: 1 / 0, C=32)
    with pytest.raises(TypeError, match="allow must be a tuple of names, got the str 'reach'"):
        assert_healthy(Block(32, 4), C=32, allow="reach")
    assert_healthy(nn.MultiheadAttention(32, 4), C=32, n_head=4, causal=False)
    with pytest.raises(ValueError, match="has 4 heads"):
        assert_healthy(MultiHeadAttention(32, 4), C=32, n_head=2)
