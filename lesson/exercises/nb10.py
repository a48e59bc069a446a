"""The exercises of notebook 10: a tiny GPT."""

import torch
import torch.nn.functional as F

from feedback.grading import Exercise


class _Table(torch.nn.Module):
    """Logits that depend on all ids so far, and a little on the next one if there is one."""

    def __init__(self, V, context_length, peek=0.0):
        super().__init__()
        generator = torch.Generator().manual_seed(V)
        self.context_length, self.peek = context_length, peek
        self.logits = torch.nn.Parameter(torch.randn(V, V, generator=generator) * 2)

    def forward(self, ids):
        if ids.shape[1] > self.context_length:
            raise ValueError(
                f"T must be at most context_length: got T={ids.shape[1]}, "
                f"context_length={self.context_length}."
            )
        later = ids.roll(-1, dims=1)
        later[:, -1] = ids[:, -1]
        ages = torch.arange(1.0, ids.shape[1] + 1)[:, None]
        known = self.logits[ids].cumsum(dim=1) / ages.sqrt()  # (B, T, V)
        return known + self.peek * F.one_hot(later, len(self.logits))


# ---------------------------------------------------------------- 10.1


def next_token_loss(model, windows):
    """Windows (B, T + 1) -> the mean cross-entropy of the model's guesses at all B T questions."""
    inputs, targets = windows[:, :-1], windows[:, 1:]
    logits = model(inputs)  # (B, T, V)
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def _per_question(model, windows):
    logits = model(windows[:, :-1])
    return F.cross_entropy(logits.mT, windows[:, 1:], reduction="none")  # (B, T)


def summed_over_time(model, windows):
    return _per_question(model, windows).sum(dim=1).mean()


def summed_over_windows(model, windows):
    return _per_question(model, windows).sum(dim=0).mean()


def last_only(model, windows):
    return _per_question(model, windows)[:, -1].mean()


def mean_probability(model, windows):
    return (-_per_question(model, windows)).exp().mean()


def sign_forgotten(model, windows):
    return -_per_question(model, windows).mean()


def log_of_the_mean(model, windows):
    return -(-_per_question(model, windows)).exp().mean().log()


def logits_taken_for_logarithms(model, windows):
    logits, targets = model(windows[:, :-1]), windows[:, 1:]
    return -logits.gather(-1, targets[..., None]).mean()


def _windows():
    cases = []
    # The last model reads T letters and no more, as the notebook's does.
    for V, B, T, context_length in ((7, 2, 5, 20), (11, 4, 6, 20), (5, 3, 8, 8)):
        generator = torch.Generator().manual_seed(T)
        model = _Table(V, context_length)
        cases.append((model, torch.randint(V, (B, T + 1), generator=generator)))
    return cases


NEXT_TOKEN_LOSS = Exercise(
    "10.1",
    next_token_loss,
    _windows,
    axes={"windows": "B n_letters"},
    intermediates=(
        ("the loss of each question, not yet averaged", _per_question),
        ("the logits", lambda model, windows: model(windows[:, :-1])),
    ),
    trained=True,
)


# ---------------------------------------------------------------- 10.2


def generate(model, ids, n, temperature, draw):
    """Texts (B, T) -> (B, T + n): n letters more, each drawn from the model's probabilities."""
    for _ in range(n):
        logits = model(ids[:, -model.context_length :])[:, -1]  # (B, V)
        probabilities = torch.softmax(logits / temperature, dim=-1)
        ids = torch.cat([ids, draw(probabilities)], dim=1)
    return ids


def likeliest(model, ids, n, temperature, draw):
    for _ in range(n):
        logits = model(ids[:, -model.context_length :])[:, -1]
        ids = torch.cat([ids, logits.argmax(dim=-1, keepdim=True)], dim=1)
    return ids


def from_one_guess(model, ids, n, temperature, draw):
    logits = model(ids[:, -model.context_length :])[:, -1]
    probabilities = torch.softmax(logits / temperature, dim=-1)
    return torch.cat([ids, *(draw(probabilities) for _ in range(n))], dim=1)


def forgets_the_beginning(model, ids, n, temperature, draw):
    for _ in range(n):
        ids = ids[:, -model.context_length :]
        probabilities = torch.softmax(model(ids)[:, -1] / temperature, dim=-1)
        ids = torch.cat([ids, draw(probabilities)], dim=1)
    return ids


def cut_before(model, ids, n, temperature, draw):
    return generate(model, ids[:, -model.context_length :], n, temperature, draw)


def cut_behind(model, ids, n, temperature, draw):
    return generate(model, ids, n, temperature, draw)[:, -model.context_length :]


def cut_behind_each(model, ids, n, temperature, draw):
    for _ in range(n):
        probabilities = torch.softmax(model(ids)[:, -1] / temperature, dim=-1)
        ids = torch.cat([ids, draw(probabilities)], dim=1)[:, -model.context_length :]
    return ids


def reads_only_the_last(model, ids, n, temperature, draw):
    for _ in range(n):
        probabilities = torch.softmax(model(ids[:, -1:])[:, -1] / temperature, dim=-1)
        ids = torch.cat([ids, draw(probabilities)], dim=1)
    return ids


class _Draw:
    """Draws as torch.multinomial does, but the same every time: at one place of the shares.

    >>> _Draw(0.5)(torch.tensor([[1.0, 1.0, 2.0], [4.0, 1.0, 1.0]])).tolist()
    [[2], [0]]
    """

    def __init__(self, place):
        self.place = place

    def __repr__(self):
        return "draw"

    def __call__(self, probabilities):
        if probabilities.dim() != 2:
            raise ValueError(
                f"draw takes probabilities (B, V), got the shape {tuple(probabilities.shape)}."
            )
        if not (probabilities >= 0).all():
            raise ValueError("draw takes probabilities, but some of these are below 0.")
        shares = probabilities.cumsum(dim=-1) / probabilities.sum(dim=-1, keepdim=True)
        return (shares > self.place).int().argmax(dim=-1, keepdim=True)  # (B, 1)


def _texts():
    cases = []
    sizes = ((9, 2, 3, 12, 0.7, 0.35), (13, 3, 10, 9, 1.8, 0.6), (7, 4, 2, 10, 0.4, 0.8))
    for V, B, T, n, temperature, place in sizes:
        generator = torch.Generator().manual_seed(n)
        ids = torch.randint(V, (B, T), generator=generator)
        cases.append((_Table(V, context_length=8), ids, n, temperature, _Draw(place)))
    return cases


GENERATE = Exercise("10.2", generate, _texts, axes={"ids": "B T"})


# ---------------------------------------------------------------- 10.3


def left_to_right_loss(model, windows):
    """Windows (B, T + 1) -> the mean loss if the model reads no letter before it is guessed."""
    losses = []
    for t in range(windows.shape[1] - 1):
        logits = model(windows[:, : t + 1])[:, -1]  # (B, V), for the letter at t + 1
        losses.append(F.cross_entropy(logits, windows[:, t + 1]))
    return torch.stack(losses).mean()


def whole_prefix(model, windows):
    losses = []
    for t in range(windows.shape[1] - 1):
        logits = model(windows[:, : t + 1])
        targets = windows[:, 1 : t + 2]
        losses.append(F.cross_entropy(logits.flatten(0, 1), targets.flatten()))
    return torch.stack(losses).mean()


def in_one_pass(model, windows):
    return _per_question(model, windows).mean()


def last_question(model, windows):
    return F.cross_entropy(model(windows[:, :-1])[:, -1], windows[:, -1])


def zeros_for_later(model, windows):
    losses = []
    for t in range(windows.shape[1] - 1):
        inputs = windows[:, :-1].clone()
        inputs[:, t + 1 :] = 0
        losses.append(F.cross_entropy(model(inputs)[:, t], windows[:, t + 1]))
    return torch.stack(losses).mean()


def reads_its_guesses(model, windows):
    ids, losses = windows[:, :1], []
    for t in range(windows.shape[1] - 1):
        logits = model(ids)[:, -1]
        losses.append(F.cross_entropy(logits, windows[:, t + 1]))
        ids = torch.cat([ids, logits.argmax(dim=-1, keepdim=True)], dim=1)
    return torch.stack(losses).mean()


def _peeking():
    cases = []
    for V, B, T in ((7, 2, 5), (11, 4, 6), (5, 3, 8)):
        generator = torch.Generator().manual_seed(T)
        model = _Table(V, context_length=20, peek=3.0)
        cases.append((model, torch.randint(V, (B, T + 1), generator=generator)))
    return cases


LEFT_TO_RIGHT_LOSS = Exercise(
    "10.3",
    left_to_right_loss,
    _peeking,
    axes={"windows": "B n_letters"},
)


EXERCISES = (NEXT_TOKEN_LOSS, GENERATE, LEFT_TO_RIGHT_LOSS)
