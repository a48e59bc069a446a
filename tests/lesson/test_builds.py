"""The judges of builds: each mistake of the page by its name, right designs, and what is left."""

import inspect
import signal

import pytest
import torch
from torch.nn.modules import module
from torch.optim import optimizer

from attention_base.known import changed_text, execute
from lesson.builds import TOLD, judge, right
from tests.lesson.build_answers import RIGHT, WRONG

PROGRAMS = {"Any": [right.Head], "Block": [right.FeedForward, right.Block]}
ENTRIES = [(build, one) for build, section in TOLD.items() for one in section.entries]


def text_of(build):
    parts = PROGRAMS.get(build, [getattr(right, build, None)])
    return "".join(map(inspect.getsource, parts))


def judged(build, text):
    names = dict(vars(right))
    execute(text, f"answer to {build}", names, names)
    return judge(build, names)


def changed(build, *changes):
    return judged(build, changed_text(text_of(build), changes, build, build))


@pytest.mark.parametrize(("build", "known"), ENTRIES, ids=[f"{b} {k.name}" for b, k in ENTRIES])
def test_each_mistake_of_the_page_is_named_and_told(build, known):
    text = changed_text(text_of(build), known.changes, known.where, build)
    verdict = judged("Head" if build == "Any" else build, text)
    assert (verdict.status, verdict.mistake) == ("failed", known.name)
    assert verdict.message and "{" not in verdict.message


@pytest.mark.parametrize("build", [build for build in TOLD if build != "Any"])
def test_a_build_is_told_in_full_and_its_program_is_right(build):
    section, verdict = TOLD[build], judge(section_id := TOLD[build].head.split()[0], vars(right))
    assert verdict.status == "passed" and not verdict.notes
    assert section_id.endswith(f".{build}") and verdict.message == section.lines[0].text
    assert (len(section.lines), len(section.items)) == (1, 3)


@pytest.mark.parametrize("name", RIGHT)
def test_other_designs_are_right(name):
    verdict = judged(name.split()[0], RIGHT[name])
    assert (verdict.status, verdict.message if verdict.mistake else "") == ("passed", "")


@pytest.mark.parametrize("mistake", WRONG)
def test_mistakes_in_other_designs_are_named(mistake):
    name, old, new = WRONG[mistake]
    assert RIGHT[name].count(old) == 1
    assert judged(name.split()[0], RIGHT[name].replace(old, new)).mistake == mistake


STUB = "        raise NotImplementedError\n"
FORWARD = "    def forward(self, x):\n"
HEAD = text_of("Head").partition("        q, k, v")[0]
BLOCK = inspect.getsource(right.Block).partition("        self.att")[0] + STUB + FORWARD + STUB
BEGUN = {
    "not attempted yet.": HEAD.partition("        self.query")[0] + STUB + FORWARD + STUB,
    "__init__ runs, and Head(12, 5) has 3 layers with 180 parameters. forward comes next.": HEAD
    + STUB,
    "__init__ still says `raise NotImplementedError`. Take that line out.": HEAD.replace(
        FORWARD, STUB + FORWARD
    )
    + STUB,
    "forward still says `raise NotImplementedError`. Take that line out.": HEAD
    + "        q = self.query(x)\n"
    + STUB,
    "FeedForward is right. Block comes next.": inspect.getsource(right.FeedForward) + BLOCK,
}


@pytest.mark.parametrize("told", BEGUN)
def test_what_is_done_of_an_answer_is_told(told):
    verdict = judged("Block" if "Block" in told else "Head", BEGUN[told])
    assert (verdict.status, verdict.message) == ("not attempted", told)


def test_the_stub_of_a_function_is_not_attempted():
    verdict = judged("train", f"def train(model, draw_windows, steps, lr=5e-3):\n{STUB}")
    assert (verdict.status, verdict.message) == ("not attempted", "not attempted yet.")


def test_a_right_answer_that_prints_or_has_no_norm_at_the_end_gets_a_note():
    printed = changed("Head", ("return weights @ v", "print(T)\n        return weights @ v"))
    no_norm = changed(
        "TinyGPT",
        ("self.to_logits(self.norm(x))", "self.to_logits(x)"),
        ("self.embedding(ids)", "self.norm(self.embedding(ids))"),
    )
    for verdict, told in ((printed, "Head prints something"), (no_norm, "no norm stands behind")):
        assert verdict.status == "passed"
        assert told in " ".join(verdict.notes)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("exit()", "ends Python"),
        ("import time; time.sleep(60)", "went on and on"),
        ("while True:\n            try: pass\n            except: pass", "went on and on"),
        ("raise ValueError('no')", "raises ValueError in line 11: `raise ValueError('no')`.\nno"),
        ("x.mask_fill(1)", "'Tensor' object has no attribute 'mask_fill'"),
    ],
)
def test_what_an_answer_does_instead_is_told(line, told):
    verdict = changed("Head", ("T = x.shape[1]", f"T = x.shape[1]\n        {line}"))
    assert verdict.status == "failed"
    assert told in verdict.message


def test_an_interrupt_passes_through():
    with pytest.raises(KeyboardInterrupt):
        changed("Head", ("T = x.shape[1]", "T = x.shape[1]\n        raise KeyboardInterrupt"))


def test_nothing_is_left_behind():
    before = torch.get_rng_state(), torch.get_num_threads(), signal.getsignal(signal.SIGALRM)
    lines = "torch.manual_seed(3); torch.set_num_threads(2); torch.set_grad_enabled(False)"
    changed("Head", ("T = x.shape[1]", f"T = x.shape[1]; {lines}"))
    changed("train", ("losses = []", "losses = []; torch.set_default_dtype(torch.float64)"))
    changed("Head", ("T = x.shape[1]", "T = x.shape[1]\n        while T: pass"))
    assert torch.get_rng_state().equal(before[0])
    assert (torch.get_num_threads(), signal.getsignal(signal.SIGALRM)) == before[1:]
    assert torch.is_grad_enabled() and torch.get_default_dtype() is torch.float32
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert not module._global_parameter_registration_hooks
    assert not optimizer._global_optimizer_pre_hooks


def test_verdicts_are_the_same_twice():
    for name, text in RIGHT.items():
        wrong = text.replace("dim=-1", "dim=1")
        assert judged(name.split()[0], wrong) == judged(name.split()[0], wrong)
