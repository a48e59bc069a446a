"""The judges of builds: each mistake of the page by its name, right designs, and what is left."""

import inspect
import signal
import sys

import pytest
import torch
from torch import nn
from torch.nn.modules import module
from torch.optim import optimizer

from attention_base.known import Known, changed_text, execute
from lesson.builds import JUDGES, TOLD, build, judge, right
from lesson.builds.steps import as_pytorch
from tests.lesson.build_answers import RIGHT, WRONG
from tests.lesson.examples import OF_TENSORS, OTHER_FORMS
from tests.lesson.proofs.reading import items
from tests.told import Told

ENTRIES = [(name, one) for name, section in TOLD.items() for one in section.entries]


def judged(name, text):
    names = dict(vars(sys.modules[build(name).reference.__module__]))
    execute(text, f"answer to {name}", names, names)
    return judge(name, names)


def changed(name, *changes):
    return build(name).check(build(name).changed(Known(name, changes)))


@pytest.mark.parametrize(("name", "known"), ENTRIES, ids=[f"{n} {k.name}" for n, k in ENTRIES])
def test_each_mistake_of_the_page_is_named_and_told(name, known, snapshot):
    exercise = build("Head" if name == "Any" else name)
    verdict = exercise.check(exercise.changed(known))
    assert (verdict.status, verdict.mistake) == ("failed", known.name)
    assert "{" not in verdict.message and verdict.message == snapshot.use_extension(Told)


@pytest.mark.parametrize("name", JUDGES)
def test_a_build_is_told_in_full_and_its_program_is_right(name):
    exercise = build(name)
    verdict = exercise.check(exercise.reference)
    assert verdict.status == "passed" and not verdict.notes
    assert exercise.id.endswith(name) and verdict.message == exercise.checked
    assert exercise.title and len(exercise.hints) == len(TOLD[name].items) == 3


CLASSES = [name for name in JUDGES if inspect.isclass(build(name).reference)]


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.filterwarnings("ignore")
def test_what_a_layer_gives_in_another_form_is_told_as_it_is_stored(name, snapshot):
    right, told = build(name).reference, []
    for what, form in (OTHER_FORMS | OF_TENSORS).items():

        def forward(*given, form=form, **more):
            return form(right.forward(*given, **more))

        verdict = build(name).check(type(right.__name__, (right,), {"forward": forward}))
        told.append(f"{what}: {verdict.status}, {verdict.mistake}: {verdict.message}")
    assert "\n\n".join(told) == snapshot.use_extension(Told)


@pytest.mark.parametrize("name", CLASSES)
def test_a_last_layer_that_begins_as_zeros_is_right_and_hides_nothing(name):
    def with_zeros(made, first=-1):
        def init(self, *sizes, **more):
            made.__init__(self, *sizes, **more)
            for layer in [one for one in self.modules() if isinstance(one, nn.Linear)][first:]:
                for own in layer.parameters():
                    nn.init.zeros_(own)

        return build(name).check(type(made.__name__, (made,), {"__init__": init}))

    assert with_zeros(build(name).reference).status == "passed"
    if name == "MultiHeadAttention":
        no_mask = Known(name, [('scores.masked_fill(~past, float("-inf"))', "scores")])
        assert with_zeros(build(name).changed(no_mask)).mistake == "no mask"
    if name == "FeedForward":
        assert with_zeros(build(name).reference, -2).status == "failed", "two never learn"


# Changes of right programs into words of their hints.
IN_OTHER_WORDS = {
    "Block": [
        ("x = x +", "something = self.attention(self.norm_1(x))\n        x = x + something #")
    ],
    "train": [
        ("logits = model(", "targets = windows[:, 1:]\n        logits = model("),
        ("windows[:, 1:].flatten()", "targets.flatten()"),
    ],
    "MultiHeadAttention": [
        ("return z.", "(B, T, C), n_head = z.shape, self.n_head\n        return z."),
        ("unflatten(2, (self.n_head, self.head_size))", "view(B, T, n_head, head_size)"),
        ("return z.", "head_size = self.head_size\n        return z."),
        ("T = x.shape[1]", "B, T, C = x.shape"),
        (".flatten(2)", ".reshape(B, T, C)"),
    ],
}


@pytest.mark.parametrize("name", JUDGES)
def test_code_in_a_hint_is_that_of_right_programs(name):
    exercise, words = build(name), IN_OTHER_WORDS.get(name, [])
    programs = [text for design, text in RIGHT.items() if design.split()[0] == name]
    programs += [exercise.solution, changed_text(exercise.solution, words, name, name)]
    assert judged(name, programs[-1]).status == "passed"
    programs = "".join(programs).replace('"', "'")
    programs += programs.replace("self.", "")
    code = [item.text for hint in exercise.hints for item in items(hint) if item.kind != "word"]
    assert [text for text in code if text not in programs] == []


@pytest.mark.parametrize("name", RIGHT)
def test_other_designs_are_right(name, snapshot):
    verdict = judged(name.split()[0], RIGHT[name])
    assert verdict.status == "passed", verdict.message
    assert "\n".join(verdict.notes) == snapshot.use_extension(Told)


@pytest.mark.parametrize("mistake", WRONG)
def test_mistakes_in_other_designs_are_named(mistake, snapshot):
    name, old, new = WRONG[mistake]
    assert RIGHT[name].count(old) == 1
    verdict = judged(name.split()[0], RIGHT[name].replace(old, new))
    assert verdict.mistake == mistake
    assert verdict.message == snapshot.use_extension(Told)


def test_an_axis_of_one_size_is_not_taken_for_another():
    verdict = changed("MultiHeadAttention", (".head_size)).transpose(1, 2)", ".head_size)).mT"))
    assert "(6) must match the size of tensor b (4)" in verdict.message


WHILE = "\n        while True: "
WITHOUT_A_NAME = [  # what the page has no entry for, or another program that is right
    ("Head", "return weights @ v", "return [1.0]"),
    ("Block", "self.attention(self.norm_1(x))", "sum([self.attention(self.norm_1(x))] * 2) / 2"),
    ("TinyGPT", "self.to_logits(", 'float("nan") * self.to_logits('),
    ("TinyGPT", "self.norm(x))", "self.norm(x)).detach()"),
    ("TinyGPT", "in range(n_layer)", "in range(n_layer + 1 - (n_layer > 1))"),
    ("train", "loss.backward()", f"loss.backward(){WHILE}model(windows[:, :-1])"),
    ("train", "windows = draw_windows()", f"windows = draw_windows(){WHILE}draw_windows()"),
    ("train", "lr=lr)", "lr=lr, maximize=True)"),
    ("train", "step()", "step(lambda: loss)"),
    ("08.MultiHeadAttention", "* self.speeds", "* self.speeds * 1.3"),
    ("08.MultiHeadAttention", "return self.proj(", "return x + 0 * self.proj("),
    ("14.MultiHeadAttention", "head_size**0.5", "head_size**0.5 * (1 if cache is None else 2)"),
]


@pytest.mark.parametrize(("name", "old", "new"), WITHOUT_A_NAME)
def test_what_no_page_names_is_told_too(name, old, new, snapshot):
    verdict = changed(name, (old, new))
    assert f"{verdict.status}: {verdict.message}" == snapshot.use_extension(Told)


@pytest.mark.parametrize("name", ["Head", "train"])
@pytest.mark.parametrize("value", ["3", "None"])
def test_another_thing_of_its_name_is_told(name, value):
    begins = {"train": "def train(model", "Head": "class Head(nn.Module):"}[name]
    assert f"It begins with {begins}" in judged(name, f"{name} = {value}").message


def test_a_sum_that_forgets_x_is_no_cut_gradient():
    old = 'x = x + self.p["a"](self.p["1"](x))\n        return x + self.p["f"](self.p["2"](x))'
    new = 'a = self.p["a"](self.p["1"](x))\n        return a + self.p["f"](self.p["2"](x + a))'
    block = RIGHT["Block parts in a dict"].replace(old, new)
    text = RIGHT["MultiHeadAttention one layer for all three, bias, SDPA"] + block
    assert judged("Block", text).mistake == "not the sum of x and its branches"


def attention_of(design, C, n_head):
    names = dict(vars(right))
    execute(RIGHT[design] if design else "", f"answer {design}", names, names)
    torch.manual_seed(0)
    return names["MultiHeadAttention"](C, n_head)


ATTENTIONS = [design for design in RIGHT if design.startswith("MultiHeadAttention")]


@pytest.mark.parametrize("design", ["", *ATTENTIONS])
@pytest.mark.parametrize("n_head", [1, 3])
def test_the_layer_of_pytorch_gives_the_same(design, n_head):
    own, x = attention_of(design, 12, n_head), torch.randn(2, 7, 12)
    layer, future = as_pytorch(own, 12, n_head), torch.ones(7, 7).triu(1) == 1
    expected = own.eval()(x)  # some drop numbers in training
    torch.testing.assert_close(layer(x, x, x, attn_mask=future)[0], expected, atol=1e-5, rtol=0)


def test_the_layer_of_pytorch_inside_takes_the_batch_first():
    own, x = nn.Sequential(nn.MultiheadAttention(12, 3)), torch.randn(2, 7, 12)
    out, _ = as_pytorch(own, 12, 3)(x, x, x)
    torch.testing.assert_close(out, own[0](*3 * (x.mT.movedim(2, 0),))[0].movedim(0, 1))


def test_where_heads_are_not_found_it_says_what_it_looks_for():
    told = r"0 heads were found, and n_head is 3\. .* as \(B, T, head_size\) of a head"
    with pytest.raises(ValueError, match=told):
        as_pytorch(torch.nn.Linear(12, 12), 12, 3)


STUB = "        raise NotImplementedError\n"
FORWARD = "    def forward(self, x):\n"
HEAD = build("Head").solution.partition("        q, k, v")[0]
NETWORK = build("FeedForward").solution.partition("        self.wide")[0] + STUB + FORWARD + STUB
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
    "Block uses FeedForward, which is not written yet.": NETWORK + build("Block").solution,
}


@pytest.mark.parametrize("told", BEGUN)
def test_what_is_done_of_an_answer_is_told(told):
    verdict = judged("Block" if "Block" in told else "Head", BEGUN[told])
    assert (verdict.status, verdict.message) == ("not attempted", told)


def test_a_block_may_have_a_feed_forward_of_its_own_and_is_judged_with_that():
    wide = build("FeedForward").solution.replace("4 * C", "(13 * C // 2 + 1)")
    assert judged("FeedForward", wide).mistake == "hidden layer not 4 * C wide"
    narrow = build("FeedForward").solution.replace("4 * C", "2 * C")
    own = narrow + RIGHT["Block RMSNorm, GELU, a feed-forward of its own"]
    assert judged("Block", own).status == "passed"
    told = judged("Block", narrow + build("Block").solution).mistake
    assert told == "hidden layer not 4 * C wide"


def test_the_stub_of_a_function_is_not_attempted():
    verdict = judged("train", f"def train(model, draw_windows, steps, lr=5e-3):\n{STUB}")
    assert (verdict.status, verdict.message) == ("not attempted", "not attempted yet.")


def test_a_right_answer_that_prints_gets_a_note():
    printed = changed("Head", ("return weights @ v", "print(T)\n        return weights @ v"))
    assert printed.status == "passed" and "Head prints something" in " ".join(printed.notes)


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
