"""Notebook 13: attentions that run and are wrong."""

import torch
import torch.nn.functional as F

from helpers.attention import causal_mask
from helpers.measured import ward_losses
from helpers.ward import EIGHT, Attention, around, ask, broken
from lesson.exercises import EXERCISES
from lesson.exercises.nb13 import in_pieces, near_mask
from tests.lesson.proofs import proves, run, written


def given(id_):
    return EXERCISES[id_].given


# ---------------------------------------------------------------- predictions


def rows_that_change(attend):
    """For each row: does its output change when the texts end behind it?"""
    q, k, v = torch.randn(3, 2, 4, 6, 8)
    whole, changed = attend(q, k, v)[0], []
    for t in range(5):  # the last row has nothing behind it
        part = attend(*(z[:, :, : t + 1] for z in (q, k, v)))[0]
        changed.append(not torch.allclose(part[:, :, t], whole[:, :, t], atol=1e-4))
    return changed


@proves("13.p1")
def the_prefix_test_after_the_division(texts):
    q, k, v = torch.randn(3, 2, 4, 6, 8)
    weights = given("13.1")(q, k, v)[1]
    total, *rows = texts["question"].gives()
    assert rows == [0, 4, 6]
    assert torch.allclose(weights.sum(dim=-1), torch.tensor(float(total)))
    torch.testing.assert_close(weights[:, :, 0, 0], torch.ones(2, 4))
    texts["why b"].says(1)
    texts["why c"].says(0, 1)
    texts["why d"].says(0, 1)
    changed = rows_that_change(given("13.1"))
    before = EXERCISES["13.1"].mistakes[1]
    assert before.name == "the softmax still over the queries" and all(
        rows_that_change(before.code)
    )  # why d
    return {
        "passes for each": not any(changed),
        "passes for all rows but": changed == [True] + 4 * [False],
        "fails for all rows but": changed == [False] + 4 * [True],
        "fails for each": all(changed),
    }


@proves("13.p2")
def when_a_masked_token_is_seen(texts):
    (masked,) = texts["question"].gives()
    low, (high,) = texts["c"].gives()[0], texts["b"].gives()
    assert low == masked

    def weight(*visible):
        """On one masked token, and so on three, in a row with these scores."""
        return torch.tensor([*visible, *[float(masked)] * 3]).softmax(dim=-1)[-3:].sum().item()

    texts["why a"].says(0, masked)
    nothing = torch.tensor(float(masked)).exp().item()
    texts["why d"].says(masked, nothing)
    below = [weight(low - 1.0, low - 2.0), weight(3.0 * low, 5.0 * low)]
    return {
        "nearly equal": weight(0.0, 0.01, 0.02) > 0.01,
        "b": weight(high + 1.0, 0.0) > 0.01,
        "c": min(below) > 0.5,
        "never": max(below) < 0.01,
    }


SIX = [bug for bug in EIGHT if bug not in ("batch norm", "pairs and halves mixed up")]


def calls(kind):
    """The outputs of the attention in the calls a to d."""
    torch.manual_seed(0)
    attention, x, old = kind(16, 4, 2).requires_grad_(False), torch.randn(2, 140, 16), []
    longer = [attention(x[:, :t])[:, -1] for t in range(4, 9)]
    attention(x[:, :3], cache=old)
    new = attention(x[:, 3:4], start=3, cache=old)
    return [attention(x), torch.stack(longer), new, attention(x, need_weights=True)[0]]


@proves("13.p9")
def the_call_that_shows_it(texts):
    pairs = zip(*map(calls, (Attention, broken("mask at the top left"))), strict=True)
    words = ("than all", "text again", "a new letter", "asked for")
    return {word: not torch.allclose(*pair) for word, pair in zip(words, pairs, strict=True)}


@proves("13.p4")
def losses_that_stand_out(texts):
    loss = {name: ways["in one pass"] for name, ways in ward_losses().items()}
    six, _, margin, usual = texts["question"].gives()
    assert six == len(SIX)
    assert abs(loss["right"] - usual) < 0.005
    far = [name for name in SIX if abs(loss[name] - usual) > margin]
    assert far == ["softmax over the queries"] and loss[far[0]] < 0.5
    texts["why a"].says(len(SIX) - 1, usual)
    texts["why c"].says(sum("mask" in name and "1e4" not in name for name in SIX), len(SIX))
    texts["why d"].says(sum(loss[name] == loss["right"] for name in SIX), len(SIX))
    assert max(loss[name] for name in SIX) < usual + margin
    counts = {"a": 0, "b": 1, "c": 3, "d": 6}
    for name, count in counts.items():
        texts[name].says(count)
    return {name: len(far) == count for name, count in counts.items()}


@proves("13.p5")
def what_shows_lost_sinks(texts):
    window, zero = texts["question"].gives()

    def attend(q, k, v):
        mask = given("13.8")(q.shape[2], k.shape[2], window, 1)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    attention, holds = around(attend)(16, 4, 2).requires_grad_(False), {}
    for pieces, other in (("a", "c"), ("b", "d")):
        (T,), (token, _) = texts[pieces].gives()[-1:], texts[other].gives()
        assert token == zero == 0 and (window < T) == (other == "d")
        x = torch.randn(2, T, 16)
        changed = x.clone()
        changed[:, 0] = torch.randn(2, 16)
        change = (attention(changed) - attention(x))[:, -1].abs().max()
        holds[pieces] = in_pieces(attention, x) > 1e-4  # a right attention gives 0
        holds[other] = change < 1e-4  # a right one changes
    texts["why b"].says(2)
    texts["why c"].says(0)
    return holds


@proves("13.p6")
def which_program_is_a_bug(texts):
    def program_a(q, k, v):
        place = torch.arange(q.shape[2])
        speed, distance = 0.25 ** torch.arange(1, q.shape[1] + 1), place[:, None] - place
        scores = q @ k.mT / q.shape[-1] ** 0.5 - speed[:, None, None] * distance
        return scores.masked_fill(distance < 0, -torch.inf).softmax(dim=-1) @ v

    def program_b(q, k, v):
        q, k = F.rms_norm(q, q.shape[-1:]), F.rms_norm(k, k.shape[-1:])
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    def program_c(q, k, v):
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return torch.sigmoid(v.mean(dim=2, keepdim=True)) * out

    texts["question"].says(3)
    asked, holds = ["prefix", "shifted", "large scores", "reach", "reference"], {}
    for letter, program in zip("abc", (program_a, program_b, program_c), strict=True):
        texts[letter].gives()
        (question,) = texts[letter].quoted()
        answers = ask(around(program), asked)
        holds[question] = answers[question] > 0
        only_different = [name for name, by in answers.items() if by] == ["reference"]
        assert only_different == (letter != "c")
    for name in ("why b", "why d", "d"):
        texts[name].gives()
    return holds | {"none of them": not any(holds.values())}


# ---------------------------------------------------------------- hints

SCORES = "scores = q @ k.mT / q.shape[-1] ** 0.5"


@proves("13.1")
def over_the_keys(texts):
    scores = torch.randn(2, 3, 5, 5)
    texts["1"].says(("B", "n_head", "T_q", "T_k"), 1)
    (queries,) = texts["2"].gives()
    columns = run(f"scores.{queries}", scores=scores).sum(dim=-2)
    torch.testing.assert_close(columns, torch.ones(2, 3, 5))
    softmax, total = texts["3"].says(..., ...)
    rows = run(softmax, scores=scores).sum(dim=-1)
    torch.testing.assert_close(rows, torch.full((2, 3, 5), float(total)))
    masked = "scores = scores.masked_fill(~causal_mask(q.shape[2]), -torch.inf)"
    return written("q, k, v", SCORES, masked, f"weights = {softmax}", "weights @ v, weights")


@proves("13.2")
def both_paths(texts):
    texts["1"].says(2)
    (causal,) = texts["2"].gives()
    masked, softmax = texts["3"].gives()
    fast = f"F.scaled_dot_product_attention(q, k, v, {causal})"
    slow = [SCORES, f"scores = {masked}", f"weights = {softmax}"]
    pair = f"({fast}, None) if not need_weights else (weights @ v, weights)"
    return written("q, k, v, need_weights", *slow, pair)


@proves("13.4")
def new_behind_old(texts):
    T_new, T_all, rows, columns = texts["1"].gives()
    mask = causal_mask(T_new, T_all)
    assert mask.shape == (rows, columns)
    _, seen = texts["2"].gives()
    counts = [run(seen, T_new=T_new, T_all=T_all, i=i) for i in range(T_new)]
    assert mask.sum(dim=1).tolist() == counts
    ends_there, call = texts["3"].gives()
    assert run(ends_there, T_new=T_new, T_all=T_all).equal(mask)
    return written("q, k, v", call)


@proves("13.5")
def key_heads(texts):
    assert texts["1"].gives() == [*range(6)]
    heads = torch.arange(2).view(1, 2, 1, 1)
    (repeat,) = texts["2"].gives()
    tiled = run(f"{repeat}(1, 3, 1, 1)", k=heads).flatten().tolist()
    keys, values = texts["3"].gives()
    in_groups = run(keys, k=heads, times=3).flatten().tolist()
    assert tiled == 3 * [0, 1] and in_groups == 3 * [0] + 3 * [1]
    return written(
        "q, k, v",
        "times = q.shape[1] // k.shape[1]",
        f"k, v = {keys}, {values}",
        "F.scaled_dot_product_attention(q, k, v, is_causal=True)",
    )


@proves("13.6")
def a_question_in_pieces(texts):
    whole, zero = texts["1"].gives()
    texts["2"].gives()
    split, append, grows, difference = texts["3"].gives()
    assert whole in difference and zero == 0
    return written(
        "attention, x",
        "cache, outputs, start = [], [], 0",
        f"for piece in {split}:",
        f"    {append}",
        f"    start += {grows}",
        f"({difference}).abs().max().item()",
    )


@proves("13.7")
def counted_in_the_text(texts):
    T_new, T_all, window = (v for v in texts["1"].gives() if isinstance(v, int))
    texts["2"].says(2)
    seen = [given("13.7")(T_new, T_all, window), near_mask(T_new, T_all, window)]
    assert [mask.sum().item() for mask in seen] == [T_all, window]
    query, oldest = (v for v in texts["3"].gives() if isinstance(v, str))
    key = "torch.arange(T_all)"
    return written(
        "T_new, T_all, window", f"query = {query}", f"({key} <= query) & ({key} > {oldest})"
    )


@proves("13.8")
def sinks_and_a_window(texts):
    (near,) = texts["3"].gives()
    return written(
        "T_new, T_all, window, sinks",
        "causal = near_mask(T_new, T_all, T_all)",
        "first = torch.arange(T_all) < sinks",
        f"causal & (first | {near})",
        near_mask=near_mask,
    )
