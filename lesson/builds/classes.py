"""Judges a head, an attention, a feed-forward and a block: `attention_clinic` names most bugs."""

import contextlib
import copy
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_base.same import same
from attention_clinic import Report, diagnose
from helpers.opened import opened
from lesson.builds import right
from lesson.builds.calling import FIXED_LENGTH, Made, Wrong, judges
from lesson.builds.steps import gives_heads, is_attention

# Beginnings of what the clinic calls different and is right here, too; a note tells the last ones.
ALSO_RIGHT = ("channels interleaved", "fused layer split", "heads reversed", "groups tiled")
TOLD_IN_A_NOTE = (
    "rotary positions (",
    "QK-norm",
    "another scale of normed",
    "ALiBi (",
    "relative position bias",
    "softcap",
    "scores scaled by log T",
    "learned sink",
    "softmax1",
    "LayerScale",
    "ReZero",
)
BIASED = "One more thing: its layers have a bias. The task asks for none; either is right."
NOT_YOURS = "One more thing: {} is from the helpers, so these steps are not yours yet."
IN_A_LIST = "One more thing: its heads run one after the other, which one product can do at once."
TOKEN_BY_TOKEN = (
    "One more thing: its weights are not seen for all tokens at once, (B, n_head, T, T). Notebooks "
    "10 and 12 look for them: there, take all queries in one product, or call PyTorch's function."
)
NOT_CHECKED = "One more thing: this could not be checked: {}."
NOT_FOUND = (
    "No queries, keys and values were found that give its outputs. If they are computed for one "
    "token after the other, compute those of all tokens at once, and check can say more."
)
TOLERANCE = 1e-4


@judges("Head")
def judge_head(made: Made) -> list[str]:
    """Judge the learner's Head (C, head_size)."""
    for C, head_size in ((12, 5), (24, 7)):
        head = made.make(C, head_size)
        problem = made.problem(head, _floats(C), head_size)
        if problem:
            break
    if problem and not problem.name:
        layers = [(one.in_features, one.out_features) for one in _linears(head)]
        if (head_size, C) in layers:
            raise made.known("sizes of a layer swapped", C=C, head_size=head_size)
        with contextlib.suppress(Exception):
            sums = head(torch.randn(2, 6, C)).reshape(2, 6, 6).sum(dim=-1)
            if same(sums, torch.ones(2, 6), TOLERANCE):
                problem = made.known("weights returned")
    if not problem and _size(head) > 3 * head_size * (C + 1):
        raise made.known("more than three layers", n=_size(head), wanted=3 * head_size * C, C=C)
    notes = _diagnosed(head, C, 1, problem, _attends(head, C, 1))
    if _size(head) < 3 * C * head_size:
        raise made.known("fewer than three layers", n=_size(head), wanted=3 * head_size * C, C=C)
    biased = [BIASED] if any(one.bias is not None for one in _linears(head)) else []
    return [*notes, *biased, *(NOT_YOURS.format(name) for name in made.helpers_called())]


@judges("MultiHeadAttention")
def judge_attention(made: Made) -> list[str]:
    """Judge the learner's MultiHeadAttention (C, n_head)."""
    return attention_notes(made)


def attention_notes(made: Made, meant: tuple[str, ...] = ()) -> list[str]:
    """Notes about a right attention; the variants that are `meant` need none."""
    for C, n_head in ((12, 3), (36, 2)):
        attention = made.make(C, n_head)
        problem = made.problem(attention, _floats(C), C)
        if problem:
            break
    if problem and not problem.name:
        with contextlib.suppress(RuntimeError, AttributeError):
            if attention(torch.randn(2, n_head, C)).shape == (2, n_head, C):
                raise made.known("heads where the tokens belong")
    heads = [] if problem else made.calls(attention, "Head", torch.randn(2, 5, C))
    if any(one.read is other.gave for one in heads for other in heads):
        raise made.known("heads one after another")
    if heads and not all(same(one.read, heads[0].read, TOLERANCE) for one in heads):
        raise made.known("heads that read different inputs")
    try:
        is_right = _attends(attention, C, n_head)
        notes = _diagnosed(attention, C, n_head, problem, is_right, meant)
    except Wrong as wrong:
        for n in (2, 4, 6, 8, 12) if not wrong.name else ():
            with contextlib.suppress(ValueError):  # of the clinic: it has another number
                if n != n_head and diagnose(attention, C=C, n_head=n).status == "healthy":
                    wrong = made.known("n_head not used", n=n, n_head=n_head)
        raise wrong from None
    if widths := {one.gave.shape[-1] for one in heads} - {C // n_head}:
        raise made.known("heads of another size", n=widths.pop(), C=C, n_head=n_head)
    words = {"n": f"{_size(attention):,}", "wanted": f"{4 * C * C:,}", "C": C}
    if _size(attention) < 4 * C * C:
        heads_alone = gives_heads(attention, torch.randn(2, 5, C))
        raise made.known(
            "no output projection" if heads_alone else "fewer than four layers", **words
        )
    has_norm = any(isinstance(one, nn.LayerNorm | nn.RMSNorm) for one in attention.modules())
    if not notes and (has_norm or _size(attention) > 4 * C * (C + 1)):
        raise made.known("more than four layers", **words)
    if heads:
        return [*notes, IN_A_LIST]
    reader = nn.Sequential(nn.Embedding(7, C), attention)
    try:
        opened(reader, torch.arange(7)[None], n_head=n_head)
    except ValueError:
        return [*notes, TOKEN_BY_TOKEN]
    return notes


@judges("FeedForward")
def judge_feed_forward(made: Made) -> list[str]:
    """Judge the learner's FeedForward (C): alone, and in the place of that of a right block."""
    for C in (12, 24):
        ff = made.make(C)
        if problem := made.problem(ff, _floats(C), C):
            raise problem
    x, empty = torch.randn(2, 6, C), copy.deepcopy(ff)
    for one in empty.parameters():
        one.data.zero_()
    block = right.Block(C, 3).eval()
    block.feed_forward = ff
    with torch.no_grad():
        out, apart = ff(x), torch.cat([ff(one) for one in x.split(1, dim=1)], dim=1)
        if not same(out, ff(x), TOLERANCE):
            raise made.known("not the same twice")
        if not same(out, apart, TOLERANCE):
            raise made.known("tokens mixed in the feed-forward")
        if same(empty(x), x, TOLERANCE):
            raise made.known("x added inside of the feed-forward")
        notes = _diagnosed(block, C, 3, None)
        far, near = (ff(k * x).abs().mean() for k in (1000, 10))
        if far < 3 * near:
            raise made.known("not ReLU or GELU", times=f"{far / near:.1f}")
        if same(ff(-x.abs()), ff(-2 * x.abs()), TOLERANCE):
            raise made.known("ReLU before the first layer")
    if not 8 * C * C <= (n := _size(ff)) < 13 * C * C:  # three layers have 12 * C * C
        raise made.known("hidden layer not 4 * C wide", n=f"{n:,}", wanted=f"{8 * C * C:,}", C=C)
    return notes


@judges("Block")
def judge_block(made: Made) -> list[str]:
    """Judge the learner's Block (C, n_head), and their FeedForward (C) if it is made of one."""
    return block_notes(made)


def block_notes(made: Made, meant: tuple[str, ...] = ()) -> list[str]:
    """Notes about a right block; the variants that are `meant` need none."""
    for C, n_head in ((12, 3), (24, 2)):
        block = made.make(C, n_head)
        problem = made.problem(block, _floats(C), C)
        if problem:
            break
    given = made.sizes_given("MultiHeadAttention", lambda: made.make(C, n_head))
    if not problem and (wrong := [sizes for sizes in given if sizes[:2] != (C, n_head)]):
        raise made.known("sizes not handed on", got=wrong[0], wanted=(C, n_head))
    with torch.no_grad():
        if not problem and same(block(x := torch.randn(2, 6, C)), x):
            raise made.known("nothing added")
    if any(type(one) is made.names.get("FeedForward") for one in block.modules()):
        judge_feed_forward(made.names)
    by_its_parts = lambda: _by_its_parts(made, block, C)  # noqa: E731
    notes = _diagnosed(block, C, n_head, problem, by_its_parts, meant)
    with torch.no_grad():
        if block(1e4 * torch.randn(2, 6, C)).abs().max() < 1e3:
            raise made.known("post-norm")
    return notes


def _by_its_parts(made: Made, block: nn.Module, C: int) -> bool:
    """Compare a block with what its attention and its feed-forward have read and given.

    False where they cannot be seen.
    """
    x = torch.randn(2, 6, C)
    read = [made.calls(block, part, x) for part in ("MultiHeadAttention", "FeedForward")]
    if any(len(calls) != 1 for calls in read):
        return False
    (attention,), (feed_forward,) = read
    with torch.no_grad():
        out, total = block(x), x + attention.gave
    for part, z, call in (("attention", x, attention), ("feed-forward", total, feed_forward)):
        normed = F.layer_norm(z, (C,)), F.rms_norm(z, (C,))
        if not any(same(call.read, one, TOLERANCE) for one in normed):
            raise made.known("a branch that reads no norm", part=part)
    if not same(out, total + feed_forward.gave, TOLERANCE):
        raise made.known("not the sum of x and its branches")
    return True


def _floats(C: int) -> Callable[[int, int], Tensor]:
    return lambda B, T: torch.randn(B, T, C)


def _linears(module: nn.Module) -> list[nn.Linear]:
    return [one for one in module.modules() if isinstance(one, nn.Linear)]


def _size(module: nn.Module) -> int:
    return sum(one.numel() for one in module.parameters())


# ---------------------------------------------------------------- the clinic


def _attends(module: nn.Module, C: int, n_head: int) -> Callable[[], bool]:
    return lambda: is_attention(module, torch.randn(2, 2 * C, C), n_head)


def _diagnosed(
    module: nn.Module,
    C: int,
    n_head: int,
    problem: Wrong | None,
    is_right: Callable[[], bool] = lambda: False,
    meant: tuple[str, ...] = (),
) -> list[str]:
    """Raise what the clinic names, or a problem that is there already; return notes.

    `is_right` is asked where the clinic does not know the module. Beginnings of variants that are
    `meant` need no note.
    """
    if problem and problem.name not in ("", FIXED_LENGTH):
        raise problem
    try:
        x = torch.randn(2 if n_head > 1 else 3, 7, C)
        report = diagnose(module, C=C, n_head=n_head, example=x)
    except (TypeError, ValueError) as error:
        raise problem or Wrong("", str(error)) from None
    wrong = _from_report(report)
    if problem:
        raise wrong if wrong and wrong.name else problem
    if wrong and (wrong.sure or not is_right()):
        raise wrong
    if report.status == "incomplete" and not is_right():
        if "equals the reference" in report.not_checked:
            raise Wrong("", NOT_FOUND)
        return [NOT_CHECKED.format(" and ".join(report.not_checked))]
    told = tuple(one for one in TOLD_IN_A_NOTE if one not in meant)
    variants = [one.partition(" (")[0] for one in report.bugs if one.startswith(told)]
    return [f"One more thing: it has {one}." for one in variants]


def _from_report(report: Report) -> Wrong | None:
    """What is wrong, in the words of the clinic."""
    failed = {one.name: one.evidence for one in report.findings if not one.ok}
    told = {**failed, **report.different}
    bugs = [one for one in report.bugs if not one.startswith(ALSO_RIGHT + TOLD_IN_A_NOTE)]
    if bugs:
        first, *more = (_sentence(told[name]) for name in bugs[:2])
        same_numbers = f"{first.partition('. ')[0]}. "  # told once
        return Wrong(bugs[0], "\n".join([first, *(one.removeprefix(same_numbers) for one in more)]))
    if report.status == "broken":
        lines = [_sentence(f"{name}: {evidence}") for name, evidence in failed.items()]
        return Wrong("", "\n".join(lines[:2]))
    if report.difference:
        lines = [f"{report.difference}.", *list(report.different.values())[:1]]
        return Wrong("", "\n".join(map(_sentence, lines)), sure=False)
    return None


def _sentence(text: str) -> str:
    text = text.partition(" (If it may, as in an encoder")[0]  # nobody can say so to check
    word = text.split()[0]  # code stays as it is
    return text if {*word} & {*"(_."} else f"{text[0].upper()}{text[1:]}"
