"""The exit questions of teaching/: each number of a key and of the wrong answers is computed.

A function under ``@computes("03.e1")`` gets the numbers and shapes that the question gives, and
returns those of the key and those of the wrong answers, in the order of the text; what it says
without numbers it asserts. A number that only repeats the question, or names a place, is written as
it is.
"""

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from attention_clinic import no_weight_on_future, rows_sum_to_one, same_for_prefix
from helpers.attention import (
    Block,
    FeedForward,
    Head,
    MultiHeadAttention,
    attention,
    causal_mask,
    window_mask,
)
from helpers.circuits import (
    induction_score,
    one_hot_tokens,
    previous_token_score,
    score_from_blocks,
    written_weights,
)
from helpers.cost import cache_bytes
from helpers.positions import rotary
from tests.lesson.proofs import fails
from tests.lesson.proofs.reading import agrees, items
from tools.lecture import plan

CHAPTERS = plan.chapters()
EXITS = {id: told for chapter in CHAPTERS.values() for id, told in chapter.exits.items()}
COMPUTED: dict[str, Callable] = {}


def computes(id: str) -> Callable[[Callable], Callable]:
    """Keep the function below as what computes an exit question."""

    def keep(function: Callable) -> Callable:
        assert id not in COMPUTED, f"{id} is computed twice"
        COMPUTED[id] = function
        return function

    return keep


def numbers(text: str) -> list:
    """The numbers, shapes and calculations of a text."""
    return [one for one in items(text) if one.kind in ("number", "shape", "calculation")]


def check_says(name: str, text: str, expected: list) -> None:
    """Compare the numbers of a text with what was computed."""
    found = numbers(text)
    said = [one.text for one in found]
    assert len(found) == len(expected), f"{name} says {said}, but {expected} was computed"
    for one, wanted in zip(found, expected, strict=True):
        assert agrees(one, wanted), f"{name} says {one.text!r}, but it is {wanted!r}: {said}"


@pytest.mark.parametrize("id", EXITS)
def test_the_numbers_of_the_key_and_of_wrong_answers_are_computed(id):
    assert id in COMPUTED, f"teaching/{id[:2]}.md asks {id}: compute it here"
    torch.manual_seed(0)
    told = EXITS[id]
    key, wrong = COMPUTED[id](*[one.value for one in numbers(told.question)])
    check_says(f"{id}, key", told.key, key)
    check_says(f"{id}, wrong answers", told.wrong, wrong)


def test_each_notebook_has_two_and_nothing_else_is_computed():
    for number, chapter in CHAPTERS.items():
        assert [*chapter.exits] == [f"{number}.e1", f"{number}.e2"]
    assert COMPUTED.keys() == EXITS.keys()


def test_a_wrong_number_is_found():
    with pytest.raises(AssertionError, match=r"says '0\.34', but it is"):
        check_says("a key", "0.67 0.34", [2 / 3, 1 / 3])
    with pytest.raises(AssertionError, match="was computed"):
        check_says("a key", "two thirds are 0.67", [2 / 3, 1 / 3])


# ---------------------------------------------------------------- 00 to 03


def rows(matrix):
    return [number for row in matrix.tolist() for number in row]


@computes("00.e1")
def it_takes_from_two_nouns(*nouns):
    words = ["the", "cat", "saw", "the", "soup", "so", "it"]
    cat, soup = torch.tensor(nouns).float().view(2, 2)
    x = torch.zeros(len(words), 2)
    x[words.index("cat")], x[words.index("soup")] = cat, soup
    parts = torch.zeros(len(words))
    parts[words.index("cat")], parts[words.index("soup")] = 2, 1
    row = parts / parts.sum()
    # Counted from 1, the two places are those of the two “the” when they are read from 0.
    assert words[words.index("cat") - 1] == words[words.index("soup") - 1] == "the"
    return [*row.tolist(), *(row @ x).tolist()], [*parts.tolist(), *(parts @ x).tolist(), 1, 1]


@computes("00.e2")
def a_mean_without_its_axis(shape):
    x = torch.randn(shape)
    for code in ("x - x.mean(dim=1)", "x - x.mean(dim=2)", "x - x.mean(dim=-1)"):
        assert fails(code, x=x)
    kept = x.mean(dim=1, keepdim=True)
    assert torch.allclose((x - kept).mean(dim=1), torch.zeros(()), atol=1e-6)
    twenty = torch.randn(shape[1], *shape[1:])  # as many texts as tokens
    assert not torch.allclose(
        twenty - twenty.mean(dim=1), twenty - twenty.mean(dim=1, keepdim=True), atol=1e-3
    )
    mean = tuple(x.mean(dim=1).shape)
    return [mean, mean[0], shape[1], 1, tuple(kept.shape)], [shape[1]]


@computes("01.e1")
def tokens_of_means(*means):
    sums = [mean * (t + 1) for t, mean in enumerate(means)]
    tokens = [after - before for before, after in zip([0, *sums], sums, strict=False)]
    steps = [after - before for before, after in zip([0, *means], means, strict=False)]
    return [*tokens, *sums], [*means, *steps]


@computes("01.e2")
def neighbours(T, replaced):
    beside = (torch.arange(T)[:, None] - torch.arange(T)).abs() <= 1
    changed = beside[:, replaced].nonzero().flatten().tolist()
    leaks = [t for t in changed if t < replaced]
    causal = causal_mask(T)[:, replaced].nonzero().flatten().tolist()
    allowed = [t for t in changed if t >= replaced]
    return [*changed, *leaks, replaced, *leaks], [*causal, *allowed, replaced]


@computes("02.e1")
def one_back(shape, _before, first, same, _one):
    W = torch.zeros(shape)
    for t in range(shape[0]):
        W[t, max(t - 1, 0)] = 1
    assert (first, same) == (0, 0)
    assert rows_sum_to_one(W).ok and no_weight_on_future(W).ok
    ahead = torch.ones(shape[0] - 1).diag(1)
    assert not no_weight_on_future(ahead).ok
    return [*rows(W), 1], [torch.zeros(shape[1]).sum().item()]


@computes("02.e2")
def mean_of_means(token, output):
    W = causal_mask(2) / causal_mask(2).sum(dim=-1, keepdim=True)
    twice = (W @ W)[output]
    once = W[output, token].item()
    key = [twice[token].item(), 1, 0, 0, 0, *twice.tolist()]
    return key, [once, once * W[output, 1].item(), once, W[output, 1].item(), 0]


@computes("03.e1")
def three_equal_scores(score, more):
    scores = torch.full((4,), float(score))
    visible = torch.tensor([True, True, True, False])
    row = scores.masked_fill(~visible, -math.inf).softmax(dim=-1)
    again = (scores + more).masked_fill(~visible, -math.inf).softmax(dim=-1)
    assert torch.allclose(row, again, atol=1e-6)
    late = scores.softmax(dim=-1) * visible
    return row.tolist(), [*late.tolist(), late.sum().item(), more]


@computes("03.e2")
def scores_apart(a, b, c, d):
    weights = torch.tensor([[a, b], [c, d]]).double().softmax(dim=-1)
    times = weights[:, 0] / weights[:, 1]
    assert torch.allclose(times[0], times[1], rtol=1e-9, atol=0)
    return [times[0].item(), math.exp(a - b)], [a / b, c / d]


# ---------------------------------------------------------------- 04 to 07


@computes("04.e1")
def two_keys(*given):
    query, keys = torch.tensor(given[:2]).float(), torch.tensor(given[2:6]).float().view(2, 2)
    values, middle = torch.tensor(given[6:8]).float(), given[8]
    assert middle == values.mean() and given[9:] == (middle, values[1])
    scores = keys @ query
    weights = scores.softmax(dim=-1)
    lengths = keys.norm(dim=-1)
    assert lengths[0] > lengths[1] and weights[1] > weights[0]
    key = [*scores.tolist(), weights[1].item(), middle, (weights @ values).item()]
    return key, [middle, *lengths.tolist(), values[1].item()]


@computes("04.e2")
def matrices_and_weights(C, head_size, T):
    head = Head(C, head_size)
    _, weights = head(torch.randn(1, T, C), return_weights=True)
    _, doubled = head(torch.randn(1, 2 * T, C), return_weights=True)
    parameters = sum(p.numel() for p in head.parameters())
    return [parameters, weights[0].numel(), doubled[0].numel()], []


@computes("05.e1")
def sizes_of_scores(d, variance, root, divisor):
    assert (variance, root, divisor) == (1, math.sqrt(d), d)
    q, k = torch.randn(2, 100_000, d)
    measured = (q * k).sum(dim=-1).std().item()
    assert abs(measured / math.sqrt(d) - 1) < 0.02
    small = math.sqrt(d) / divisor
    weights = (small * torch.randn(1000, 8)).softmax(dim=-1)
    assert (weights - 1 / 8).abs().mean() < 0.02  # nearly the plain average
    return [math.sqrt(d), math.sqrt(d) / root, small, small], [d, d / root, d / divisor]


@computes("05.e2")
def derivative_of_a_weight(_one, high, low):
    def derivative(w):  # of a row of two keys, by autograd
        scores = torch.tensor([math.log(w / (1 - w)), 0.0], dtype=torch.double)
        return torch.autograd.functional.jacobian(lambda s: s.softmax(dim=-1), scores)[0, 0].item()

    candidates = torch.arange(1, 100) / 100
    best = max(candidates.tolist(), key=derivative)
    assert math.isclose(derivative(high), derivative(low), rel_tol=1e-6)
    return [best, derivative(best), derivative(high)], [low, high]


@computes("06.e1")
def shapes_of_heads(B, T, C, n_head):
    z = torch.randn(B, T, C)
    q = z.view(B, T, n_head, C // n_head).transpose(1, 2)
    merged = ((q @ q.mT) @ q).transpose(1, 2).reshape(B, T, C)
    wrong = z.view(B, T, n_head, C // n_head)
    return [tuple(x.shape) for x in (q, q @ q.mT, merged)], [
        tuple(x.shape) for x in (wrong, wrong @ wrong.mT)
    ]


@computes("06.e2")
def silence_a_head(C, n_head, _stored, head, zero):
    size = C // n_head
    layer, x = MultiHeadAttention(C, n_head), torch.randn(2, 5, C)
    first, last = size * head, size * (head + 1) - 1

    def out():
        with torch.no_grad():
            return layer(x)

    with torch.no_grad():
        layer.proj.weight[:, first : last + 1] = zero  # stored as (out, in)
    before = out()
    with torch.no_grad():
        layer.value.weight[first : last + 1] += 1  # head 2 passes on something else
    assert torch.allclose(before, out(), atol=1e-6)
    counted_from_1 = [size * (head - 1), size * head - 1]
    return [first, last, head], [*counted_from_1, 1, first, last, head]


@computes("07.e1")
def blocks_that_add_nothing(zero):
    x, y = torch.randn(2, 4, 16), torch.randn(2, 4, 16)
    for _ in range(10):
        block = Block(16, 2)
        for layer in (block.attention.proj, block.feed_forward.proj):
            for parameter in layer.parameters():
                torch.nn.init.constant_(parameter, zero)
        y = block.feed_forward(block.norm_2(block.attention(block.norm_1(y))))
        assert torch.equal(block(x), x)
    return [zero, y.abs().max().item()], [zero]


@computes("07.e2")
def who_mixes_tokens(token, T):
    def changed(function):
        x = torch.randn(1, T, 16)
        other = x.clone()
        other[:, token] = torch.randn(16)
        with torch.no_grad():
            apart = (function(x) - function(other)).abs().amax(dim=-1)[0]
        return (apart > 1e-6).nonzero().flatten().tolist()

    layers = FeedForward(16), torch.nn.LayerNorm(16), Block(16, 2)
    return [t for layer in layers for t in changed(layer)], []


# ---------------------------------------------------------------- 08 to 10


@computes("08.e1")
def turned_by(speed, query, key, far_query, far_key):
    ahead, far = speed * (query - key), speed * (far_query - far_key)
    distances = range(query - key + 1, 360)
    again = next(n for n in distances if (n * speed - ahead) % 360 == 0)
    assert again * speed - ahead == 360  # one full circle
    key_says = [ahead, far, again, again * speed, again * speed, ahead]
    return key_says, [query * speed, key * speed, far_query, far_key]


@computes("08.e2")
def cat_bites_dog():
    words = {word: torch.randn(8) for word in ("cat", "bites", "dog")}
    head, seen = Head(8, 8), []

    def at_cat(text, mask):
        place = text.split().index("cat")
        if mask is not None:
            seen.append(int(causal_mask(3)[place].sum()))
        with torch.no_grad():
            return head(torch.stack([words[w] for w in text.split()])[None], mask=mask)[0, place]

    one, two = "cat bites dog", "dog bites cat"
    assert torch.allclose(at_cat(one, None), at_cat(two, None), atol=1e-6)
    assert not torch.allclose(at_cat(one, "causal"), at_cat(two, "causal"), atol=1e-2)
    return seen, []


@computes("09.e1")
def two_windows(query, output):
    i, j = torch.arange(query + 1)[:, None], torch.arange(query + 1)
    mask = (j <= i) & (j > i - 3)
    assert "`(j <= i) & (j > i - 3)`" in EXITS["09.e1"].question
    assert torch.equal(mask, window_mask(query + 1, 3))
    one = mask[query].nonzero().flatten().tolist()
    two = (mask.float() @ mask.float())[output].nonzero().flatten().tolist()
    at_least = ((j <= i) & (j >= i - 3))[query].nonzero().flatten().tolist()
    added = query - 2 * len(one) + 1
    wrong = [at_least[0], at_least[-1], one[0], one[-1], added, query, len(one)]
    return [*one, *two], wrong


@computes("09.e2")
def across(B, written, read, total):
    head = Head(8, 8)
    memory, x = torch.randn(B, read, 8), torch.randn(B, written, 8)
    _, weights = head(x, context=memory, mask=None, return_weights=True)
    assert torch.allclose(weights.sum(dim=-1), torch.full((), float(total)), atol=1e-6)
    shape = tuple(weights.shape)
    return [shape, shape[1], shape[2]], [(B, read, written), (B, written, written)]


@computes("10.e1")
def loss_of_a_die(V, loss):
    die = F.cross_entropy(torch.zeros(1, V), torch.tensor([V - 1])).item()
    right = math.exp(-loss)
    return [die, V, right, right], [1 / V, loss, 1 - loss]


@computes("10.e2")
def random_letters(V, loss):
    best = F.cross_entropy(torch.zeros(1, V), torch.tensor([0])).item()
    assert loss < best
    return [best, V], []


# ---------------------------------------------------------------- 11 to 15


@computes("11.e1")
def the_first_token():
    letters, T = "abcd", 6
    for part, size in {"position": T, "letter": len(letters)}.items():
        block = torch.zeros(size, T)
        block[:, 0] = 1
        M = score_from_blocks(letters, T, {(part, "position"): block})
        for word in ("abcd", "ddda", "cabbad"):
            weights = written_weights(one_hot_tokens(word, letters, T), M)
            assert (weights[:, 0] > 0.99).all()
    return ["Position × position", 0, "Letter × position"], ["Letter × letter"]


@computes("11.e2")
def what_stands_behind_a_b():
    letters, wins = "abcd", {}
    tokens = {word: one_hot_tokens(word, letters, 3) for word in ("bad", "cad")}
    for word in tokens:
        wins[word] = next((t for t in range(2) if t and word[t - 1] == "b"), 2)
    assert wins == {"bad": 1, "cad": 2}  # “a”, and “d” itself
    assert torch.equal(tokens["bad"][1:], tokens["cad"][1:])  # so both scores of “d” are equal
    return [], []


@computes("12.e1")
def one_period_ago(position):
    text, period = "fishfishfi", 4
    assert text[position:] == "i" and text[:period] == text[period : 2 * period]
    equal = position - period
    assert text[equal] == "i" and text[equal + 1] == "s"

    def score(of, key):  # of a head in which this query gives all its weight to one key
        weights = torch.eye(len(text)).roll(key - position, 1)
        return of(weights)

    assert score(lambda w: induction_score(w, period), equal + 1) == 1
    assert score(previous_token_score, position - 1) == 1
    last_h = text.rindex("h", 0, position)
    return [position - 1, equal + 1, equal], [equal, last_h]


@computes("12.e2")
def a_head_that_is_not_needed(_weight, _right):
    return [], []


@computes("13.e1")
def two_bugs(*_zeros):
    q, k, v = torch.randn(3, 2, 6, 8)

    def weights_of(bug, T=6):
        scores, visible = q[:, :T] @ k[:, :T].mT / 8**0.5, causal_mask(T)
        if bug == "A":
            return scores.masked_fill(~visible, 0.0).softmax(dim=-1)
        return scores.softmax(dim=-1).masked_fill(~visible, 0.0)

    passed = {
        bug: (
            rows_sum_to_one(weights_of(bug)).ok,
            no_weight_on_future(weights_of(bug)).ok,
            same_for_prefix(lambda x, b=bug: weights_of(b, x.shape[1]) @ x, v).ok,
        )
        for bug in "AB"
    }
    assert passed == {"A": (True, False, False), "B": (False, True, False)}
    return [], [0, 0]


@computes("13.e2")
def two_at_a_time():
    q, k, v = torch.randn(3, 1, 6, 8)

    def in_pieces(size, mask_of, place_of=lambda t: t):
        pieces = []
        for start in range(0, 6, size):
            seen = start + size
            places = torch.tensor([place_of(t) for t in range(start, seen)])
            new = rotary(q[:, start:seen], places)
            kept = rotary(k[:, :seen])
            pieces.append(attention(new, kept, v[:, :seen], mask=mask_of(size, seen))[0])
        return torch.cat(pieces, dim=1)

    def no_mask(size, seen):
        return torch.ones(size, seen, dtype=torch.bool)

    def top_left(size, seen):  # what is_causal=True does
        return no_mask(size, seen).tril()

    whole = in_pieces(6, causal_mask)

    def right(*given):
        return torch.allclose(in_pieces(*given), whole, atol=1e-6)

    assert right(1, no_mask) and not right(2, no_mask)
    assert right(1, causal_mask) and right(2, causal_mask)
    assert not right(1, top_left) and not right(2, top_left)
    assert not right(1, causal_mask, lambda t: 0)  # positions that begin at 0 again
    return [], [0]


@computes("14.e1")
def bytes_of_a_token(n_layer, n_head, group, head_size, bytes_):
    n_kv_head = n_head // group

    def of(heads):
        return cache_bytes(n_layer, heads, head_size, T=1, bytes_per_number=bytes_)

    factors = (2, n_layer, n_kv_head, head_size, bytes_)
    assert math.prod(factors) == of(n_kv_head)
    return [of(n_kv_head), factors, n_kv_head], [of(n_head), of(n_kv_head) // 2, of(n_head * group)]


@computes("14.e2")
def a_window_saves(window, few, many):
    def bytes_of(T):
        return cache_bytes(2, 4, 16, T)

    short, long = (bytes_of(T) / bytes_of(min(T, window)) for T in (few, many))
    always = bytes_of(many) / bytes_of(window)
    return [short, long, window], [always, always, bytes_of(few) / bytes_of(window), long, window]


@computes("15.e1")
def the_key_head_of_a_query_head(n_head, n_kv_head, head, head_size):
    C = n_head * head_size
    layer, group = MultiHeadAttention(C, n_head, n_kv_head), n_head // n_kv_head
    with torch.no_grad():  # each head of values passes its own number on, and proj nothing else
        layer.value.weight.zero_()
        layer.value.weight[:, 0] = torch.arange(n_kv_head).repeat_interleave(head_size)
        layer.proj.weight.copy_(torch.eye(C)), layer.proj.bias.zero_()
        read = layer(torch.ones(1, 3, C))[0, 0, head * head_size].round().int().item()
    assert read == head // group
    rows = len(layer.key.weight)
    key = [read, head, group, head // group, rows, (n_kv_head, head_size)]
    return key, [head % n_kv_head, head, n_kv_head, len(layer.query.weight)]


@computes("15.e2")
def the_same_maps_and_other_values():
    head, it, noun = Head(6, 4), 3, 1
    with torch.no_grad():  # the last channel is read by the values alone
        head.query.weight[:, -1] = head.key.weight[:, -1] = 0
        one = torch.randn(1, 4, 6)
        other = one.clone()
        other[0, noun, -1] += 3
        (out, weights), (out_of_other, others) = (
            head(x, return_weights=True) for x in (one, other)
        )
        assert torch.equal(weights, others) and weights[0, it, noun] > 0.05
        assert not torch.allclose(out[0, it], out_of_other[0, it], atol=0.01)
        weights[0, it, noun] = 0  # “it” does not attend to the noun: nothing arrives
        same = [(weights @ head.value(x))[0, it] for x in (one, other)]
        assert torch.equal(*same)
    return [], []
