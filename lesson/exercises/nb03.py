"""The exercises of notebook 03: from scores to weights."""

import torch
from torch import nn

from attention_base.numbers import described
from feedback import messages
from feedback.grading import Exercise
from helpers.attention import attention, causal_mask
from helpers.toy import numbers
from lesson.exercises.properties import NO_FUTURE, ROWS_SUM_TO_ONE

# ---------------------------------------------------------------- 03.1


def causal_softmax(scores):
    """(B, T, T) scores -> (B, T, T) weights: no weight on the future, every row sums to 1."""
    T = scores.shape[-1]
    may_attend = torch.tril(torch.ones(T, T, dtype=torch.bool))
    masked = scores.masked_fill(~may_attend, float("-inf"))
    return torch.softmax(masked, dim=-1)


def renormalised(scores):
    weights = torch.tril(torch.softmax(scores, dim=-1))
    return weights / weights.sum(dim=-1, keepdim=True)


def _large_negative(scores):
    T = scores.shape[-1]
    return torch.softmax(scores.masked_fill(torch.tril(torch.ones(T, T)) == 0, -1e9), dim=-1)


def _scores():
    generator = torch.Generator().manual_seed(0)
    return [
        (2 * torch.randn(2, 5, 5, generator=generator),),
        (2 * torch.randn(3, 4, 4, generator=generator),),
        (_with_a_high_future(2 * torch.randn(2, 3, 3, generator=generator)),),
    ]


def _with_a_high_future(scores):
    """One later score is so far above the others of its row that these underflow beside it."""
    scores[1, 0] = torch.tensor([-60.0, -60.0, 60.0])  # exp(60) and exp(-60) do not
    return scores


def _masked(scores):
    T = scores.shape[-1]
    return scores.masked_fill(torch.ones(T, T).triu(1) == 1, float("-inf"))


def _plain_average(scores):
    return torch.softmax(_masked(torch.zeros_like(scores)), dim=-1)


def _exponentials(scores):
    return torch.tril(torch.exp(scores))


def _softmax_twice(scores):
    return torch.softmax(causal_softmax(scores), dim=-1)


def _zero_twice(scores):
    return torch.softmax(torch.tril(torch.softmax(scores, dim=-1)), dim=-1)


def divided_by_everything(scores):
    return _exponentials(scores) / _exponentials(scores).sum()


def _without_itself(scores):
    weights = torch.softmax(
        scores.masked_fill(torch.ones_like(scores).triu() == 1, float("-inf")), dim=-1
    )
    return weights.nan_to_num()


def _without_exp(scores):
    return scores.tril() / scores.tril().sum(dim=-1, keepdim=True)


CAUSAL_SOFTMAX = Exercise(
    "03.1",
    causal_softmax,
    _scores,
    axes={"scores": "B T T", "return": "B T T"},
    intermediates=(
        ("the masked scores, before the softmax", _masked),
        ("a softmax of the earlier scores, without the token's own", _without_itself),
        ("the scores, masked with 0 and divided by their sum, without exponentials", _without_exp),
        ("the softmax of the scores without a mask", lambda scores: torch.softmax(scores, -1)),
        ("the mask, and no weights", lambda scores: torch.tril(torch.ones_like(scores))),
        ("the weights of the plain causal mean: the scores are not used", _plain_average),
        ("the exponentials of the scores, with the future at 0, not yet divided", _exponentials),
        ("the right weights after another softmax", _softmax_twice),
        ("a softmax of the scores with the future set to 0, then of its result", _zero_twice),
    ),
    accepted=(_large_negative,),
    properties=(ROWS_SUM_TO_ONE, NO_FUTURE),
)


# ---------------------------------------------------------------- 03.2


def attend(x):
    """(B, T, C) -> (B, T, C): averages of the tokens, with weights computed from the tokens."""
    scores = x @ x.mT  # (B, T, T)
    masked = scores.masked_fill(~causal_mask(x.shape[1]), float("-inf"))
    weights = torch.softmax(masked, dim=-1)
    return weights @ x


def channels_compared(x):
    return causal_softmax(x.mT @ x) @ x


def _own_weights(x):
    return causal_softmax(x @ x.mT)


def _unmasked(x):
    return torch.softmax(x @ x.mT, dim=-1)


ATTEND = Exercise(
    "03.2",
    attend,
    lambda: [(numbers(C=3)[:2, :5],), (numbers(C=6, seed=42)[1:, :4],)],
    axes={"x": "B T C", "return": "B T C"},
    intermediates=(
        ("the scores", lambda x: x @ x.mT),
        ("the masked scores", lambda x: _masked(x @ x.mT)),
        ("the weights, not yet multiplied by the tokens", _own_weights),
        ("the weights without a mask, not yet multiplied by the tokens", _unmasked),
        ("the output of the last token only", lambda x: attend(x)[:, -1]),
        (
            "the weighted averages of the scores, in the place of the tokens",
            lambda x: _own_weights(x) @ (x @ x.mT),
        ),
        ("the scores times the tokens, without mask and softmax", lambda x: (x @ x.mT) @ x),
        ("the tokens as they came", lambda x: x),
    ),
    without="attention",
    ready_made=(attention,),
)


# ---------------------------------------------------------------- 03.3


def safe_softmax(scores):
    """(..., T) scores -> (..., T) weights, without torch.softmax and for scores of any size."""
    largest = scores.max(dim=-1, keepdim=True).values
    exp = torch.exp(scores - largest)
    return exp / exp.sum(dim=-1, keepdim=True)


def _by_logsumexp(scores):
    return torch.exp(scores - torch.logsumexp(scores, dim=-1, keepdim=True))


def _large_scores():
    generator = torch.Generator().manual_seed(0)
    return [
        (torch.randn(3, 5, generator=generator),),
        (torch.tensor([[1000.0, 1001.0, 999.0], [0.0, 1.0, 2.0]]),),
        # exp(200) overflows too, and leaves enough digits to compare within atol.
        (torch.tensor([[0.0, 200.0, 2.0], [-200.0, -201.0, -200.5]]),),
    ]


def _shifted(scores):
    return scores - scores.amax(dim=-1, keepdim=True)


def _shifted_exponentials(scores):
    return torch.exp(_shifted(scores))


def _base_two(scores):
    return torch.softmax(scores * torch.log(torch.tensor(2.0)), dim=-1)


def _no_exponentials(scores):
    return scores / scores.sum(dim=-1, keepdim=True)


SAFE_SOFTMAX = Exercise(
    "03.3",
    safe_softmax,
    _large_scores,
    axes={"scores": "... T", "return": "... T"},
    intermediates=(
        ("the exponentials, not yet divided by their sum", _shifted_exponentials),
        ("the scores minus the largest of their row", lambda scores: _shifted(scores)),
        ("2 to the power of the scores, divided by its sum, with 2 in the place of e", _base_two),
        ("the scores divided by their sum, without exponentials", _no_exponentials),
    ),
    accepted=(_by_logsumexp,),
    without="softmax",
    named=("numbers 1000 times as large in `scores`", "numbers around -1000 in `scores`"),
    optional=True,
    properties=(ROWS_SUM_TO_ONE,),
)


# ---------------------------------------------------------------- 03.generate


@torch.no_grad()
def generate(model, ids, n, temperature=1.0):
    """Texts (B, T) -> (B, T + n): n letters more, each drawn by the logits of the model."""
    for _ in range(n):
        logits = model(ids[:, -model.context_length :])[:, -1]  # (B, V)
        weights = torch.softmax(logits / temperature, dim=-1)
        ids = torch.cat([ids, torch.multinomial(weights, 1)], dim=1)
    return ids


def softmax_over_positions(model, ids, n, temperature=1.0):
    for _ in range(n):
        logits = model(ids[:, -model.context_length :]) / temperature  # (B, T, V)
        weights = torch.softmax(logits, dim=1)[:, -1]
        ids = torch.cat([ids, torch.multinomial(weights, 1)], dim=1)
    return ids


def by_argmax(model, ids, n, temperature=1.0):
    for _ in range(n):
        logits = model(ids[:, -model.context_length :])[:, -1]
        ids = torch.cat([ids, logits.argmax(dim=-1, keepdim=True)], dim=1)
    return ids


def from_one_guess(model, ids, n, temperature=1.0):
    logits = model(ids[:, -model.context_length :])[:, -1]
    weights = torch.softmax(logits / temperature, dim=-1)
    return torch.cat([ids, torch.multinomial(weights, n, replacement=True)], dim=1)


def forgets_the_beginning(model, ids, n, temperature=1.0):
    for _ in range(n):
        ids = ids[:, -model.context_length :]
        weights = torch.softmax(model(ids)[:, -1] / temperature, dim=-1)
        ids = torch.cat([ids, torch.multinomial(weights, 1)], dim=1)
    return ids


def cut_before(model, ids, n, temperature=1.0):
    return generate(model, ids[:, -model.context_length :], n, temperature)


def at_the_old_end(model, ids, n, temperature=1.0):
    T = ids.shape[1]
    for _ in range(n):
        logits = model(ids[:, -model.context_length :])
        weights = torch.softmax(logits[:, min(T, logits.shape[1]) - 1] / temperature, dim=-1)
        ids = torch.cat([ids, torch.multinomial(weights, 1)], dim=1)
    return ids


def added(model, ids, n, temperature=1.0):
    for _ in range(n):
        logits = model(ids[:, -model.context_length :])[:, -1]
        ids = ids + torch.multinomial(torch.softmax(logits / temperature, dim=-1), 1)
    return ids


def one_letter_for_all(model, ids, n, temperature=1.0):
    for _ in range(n):
        logits = model(ids[:, -model.context_length :])[:, -1]
        drawn = torch.multinomial(torch.softmax(logits / temperature, dim=-1)[0], 1)
        ids = torch.cat([ids, drawn.expand(ids.shape[0], 1)], dim=1)
    return ids


class _Model(nn.Module):
    """Logits that depend on the letter alone, and a note of what was read.

    With `sure`, letter i is followed by letter i + 1, and no other.
    """

    def __init__(self, V, context_length, sure=False):
        super().__init__()
        self.context_length, self.sure = context_length, sure
        logits = 1.5 * torch.randn(V, V, generator=torch.Generator().manual_seed(3))
        self.table = nn.Parameter(60 * torch.eye(V).roll(1, dims=1) if sure else logits)
        self.read, self.with_gradients = [], []

    def __repr__(self):
        return "model"

    def forward(self, ids):
        if len(self.read) > 40:
            raise RuntimeError("The model has been called 40 times. Does the loop end?")
        if not isinstance(ids, torch.Tensor) or ids.dim() != 2:
            raise TypeError(f"The model takes ids of shape (B, T), got {described(ids)}.")
        if not 0 < ids.shape[1] <= self.context_length:
            raise ValueError(
                f"The model reads 1 to {self.context_length} letters (its context_length), got "
                f"{ids.shape[1]}."
            )
        self.read.append(ids.clone())
        self.with_gradients.append(torch.is_grad_enabled())
        return self.table[ids]


def _generated(answer, model, ids, n, temperature=1.0):
    out = answer(model, ids, n, temperature)
    return out if out is None else (out, model)


def _of_ids(generated, model, ids, n, temperature=1.0):
    """Effect: the ids, or the share of each letter; and what the model has read."""
    out, model = generated
    B, T = ids.shape
    if not isinstance(out, torch.Tensor):
        raise ValueError(f"Expected a tensor, got {described(out)}.")
    if out.is_floating_point():
        raise TypeError(messages.wrong_kind(out, ids))
    if out.shape != (B, T + n):
        told = f"{B:,} texts of {T} letters and n = {n} gave the shape {tuple(out.shape)}"
        raise ValueError(f"{told}; expected {(B, T + n)}.")
    if not out[:, :T].equal(ids):
        raise ValueError("The texts that came back do not begin with the letters that were given.")
    read = torch.zeros(12, 3)  # of each call: how many letters, the first one, the last one
    for i, some in enumerate(model.read[:12]):
        read[i] = torch.tensor([some.shape[1], *some[0, [0, -1]].tolist()])
    for i in range(n):
        seen = out[:, : T + i][:, -model.context_length :]
        if not any(some.shape == seen.shape and some.equal(seen) for some in model.read):
            given = model.read[min(i, len(model.read) - 1)] if model.read else None
            got = "nothing" if given is None else f"{given[0].tolist()}"
            told = f"Before letter {i + 1}, the first text was {out[0, : T + i].tolist()}"
            told += f" and context_length is {model.context_length}. The model was given {got}."
            return torch.cat([out[:3].flatten(), read.flatten()]), told
    if model.sure:
        right = (ids[:, -1:] + 1 + torch.arange(n)) % len(model.table)
        wrong = (out[:, T:] != right).any(dim=1).nonzero().flatten().tolist()
        told = (
            f"For logits that are 60 for one letter and 0 for all others, text {wrong[0]} got the "
            f"letters {out[wrong[0], T:].tolist()}; expected {right[wrong[0]].tolist()}."
            if wrong
            else ""
        )
        return torch.cat([out[:3].flatten(), read.flatten()]), told
    shares, right = [], []
    for kind in (0, 1):  # the texts take turns
        shares.append(torch.bincount(out[kind::2, -1], minlength=len(model.table)) / (B / 2))
        right.append(torch.softmax(model.table[ids[kind, -1]] / temperature, dim=-1).detach())
    effect = torch.cat([*shares]) / 5
    if (torch.stack(shares) - torch.stack(right)).abs().max() > 0.05:
        mine, wanted = (" ".join(f"{share:.2f}" for share in one[0]) for one in (shares, right))
        told = f"At a temperature of {temperature:g}, the letters are drawn with the shares {mine}"
        return effect, f"{told}; softmax(logits / temperature) is {wanted}."
    return effect, ""


def _remark(used):
    """What else a model that trains may need."""
    model = _Model(3, 4)
    used(model, torch.zeros(1, 1, dtype=torch.long), 1)
    if all(model.with_gradients):
        return (
            "One more thing, for later: with @torch.no_grad() above the function, it keeps nothing "
            "that only training needs."
        )
    return ""


def _texts():
    ids = torch.tensor([[0, 3, 1, 5], [2, 2, 4, 0], [5, 1, 0, 3]])
    pairs = torch.tensor([[2, 0], [1, 3]])
    return [
        (_Model(6, 5, sure=True), ids, 5, 1.0),  # not as many as it has letters
        (_Model(6, 5), pairs.repeat(4000, 1), 1, 2.0),
        (_Model(6, 5), pairs[:, :1].repeat(4000, 1), 1),
        (_Model(6, 5, sure=True), ids.repeat(1, 2), 2, 0.5),
    ]


GENERATE = Exercise(
    "03.generate",
    generate,
    _texts,
    used=_generated,
    effect=_of_ids,
    remark=_remark,
)


EXERCISES = (CAUSAL_SOFTMAX, ATTEND, SAFE_SOFTMAX, GENERATE)
