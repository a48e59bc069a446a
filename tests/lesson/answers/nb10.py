"""Wrong answers to the exercises of notebook 10, as learners might write them."""

import math

import torch
import torch.nn.functional as F

from tests.lesson.answers import wrong

# --------------------------------------------------- 10.1 the loss of the next letter


def scored(logits, targets):
    """The loss of each question, (B, T)."""
    chosen = logits.log_softmax(-1).gather(2, targets.unsqueeze(2))
    return -chosen.squeeze(2)


@wrong("10.1", named="one letter too many read")
def last_answer_thrown_away(model, windows):
    T = windows.shape[1] - 1
    return F.cross_entropy(model(windows).mT[..., :T], windows[:, 1:])


@wrong("10.1", named="targets not shifted")
def copies(model, windows):
    inputs = windows[:, :-1]
    return scored(model(inputs), inputs).mean()


@wrong("10.1", named="inputs and targets exchanged")
def asks_backwards(model, windows):
    return scored(model(windows[:, 1:]), windows[:, :-1]).mean()


@wrong("10.1", named="nothing cut off, and not shifted")
def whole_windows(model, windows):
    V = model(windows).shape[-1]
    return F.cross_entropy(model(windows).reshape(-1, V), windows.reshape(-1))


@wrong("10.1", named="the last target is the first letter")
def in_a_circle(model, windows):
    targets = torch.cat([windows[:, 1:], windows[:, :1]], dim=1)
    return scored(model(windows), targets).mean()


@wrong("10.1", named="two letters ahead")
def one_too_far(model, windows):
    T = windows.shape[1]
    return scored(model(windows[:, : T - 2]), windows[:, 2:T]).mean()


@wrong("10.1", named="shifted from window to window")
def next_window(model, windows):
    x, y = windows[: len(windows) - 1], windows[1:]
    return scored(model(x), y).mean()


@wrong("10.1", named="softmax before the cross-entropy")
def softmax_twice(model, windows):
    probabilities = F.softmax(model(windows[:, :-1]), dim=2)
    return F.cross_entropy(probabilities.mT, windows[:, 1:])


@wrong("10.1", named="no softmax")
def nll_of_logits(model, windows):
    return F.nll_loss(model(windows[:, :-1]).mT, windows[:, 1:])


@wrong("10.1", named="not flattened")
def straight_in(model, windows):
    x, y = windows[:, :-1], windows[:, 1:]
    return F.cross_entropy(model(x), y)


@wrong("10.1", named="logits in another order than the targets")
def time_first(model, windows):
    logits = model(windows[:, :-1]).permute(1, 0, 2)
    V = logits.shape[-1]
    return F.cross_entropy(logits.reshape(-1, V), windows[:, 1:].reshape(-1))


@wrong("10.1", named="letters and vocabulary exchanged")
def mixed_rows(model, windows):
    logits = model(windows[:, :-1]).transpose(1, 2)
    B, V, T = logits.shape
    return F.cross_entropy(logits.reshape(B * T, V), windows[:, 1:].flatten())


@wrong("10.1", named="summed, not averaged")
def added_up(model, windows):
    return scored(model(windows[:, :-1]), windows[:, 1:]).sum()


@wrong("10.1", named="summed over the letters of a window")
def per_window(model, windows):
    return scored(model(windows[:, :-1]), windows[:, 1:]).sum() / len(windows)


@wrong("10.1", named="summed over the windows")
def per_letter(model, windows):
    total = 0
    for window in windows:
        total = total + F.cross_entropy(model(window[None, :-1])[0], window[1:])
    return total


@wrong("10.1", named="divided by the vocabulary, too")
def mean_over_everything(model, windows):
    logits = model(windows[:, :-1])
    hot = F.one_hot(windows[:, 1:], logits.shape[-1])
    return -(hot * logits.log_softmax(-1)).mean()


@wrong("10.1", named="only the last letter of each window")
def the_last_one(model, windows):
    return F.cross_entropy(model(windows[:, :-1])[:, -1, :], windows[:, -1])


@wrong("10.1", named="sign forgotten")
def log_probability(model, windows):
    return -scored(model(windows[:, :-1]), windows[:, 1:]).mean()


@wrong("10.1", named="probability in the place of its logarithm")
def share_of_right(model, windows):
    p = model(windows[:, :-1]).softmax(-1)
    return p.gather(-1, windows[:, 1:, None]).mean()


@wrong("10.1", named="averaged before the logarithm")
def log_last(model, windows):
    p = model(windows[:, :-1]).softmax(-1).gather(-1, windows[:, 1:, None])
    return -torch.log(p.mean())


@wrong("10.1", named="the first question left out")
def from_position_one(model, windows):
    logits, losses = model(windows[:, :-1]), []
    for t in range(1, logits.shape[1]):
        losses.append(F.cross_entropy(logits[:, t], windows[:, t + 1]))
    return torch.stack(losses).mean()


@wrong("10.1", named="the last question left out")
def cut_twice(model, windows):
    T = windows.shape[1]
    return scored(model(windows[:, : T - 2]), windows[:, 1 : T - 1]).mean()


@wrong("10.1", named="only the first window")
def returns_in_the_loop(model, windows):
    for window in windows:
        return scored(model(window[None, :-1]), window[None, 1:]).mean()


@wrong("10.1", named="the exponential of the loss")
def perplexity(model, windows):
    return torch.exp(scored(model(windows[:, :-1]), windows[:, 1:]).mean())


@wrong("10.1", named="softmax along the letters")
def over_positions(model, windows):
    p = torch.softmax(model(windows[:, :-1]), 1)
    return -torch.log(p.gather(2, windows[:, 1:].unsqueeze(2))).mean()


@wrong("10.1", named="its own guesses as targets")
def flattered(model, windows):
    logits = model(windows[:, :-1])
    return scored(logits, logits.max(dim=-1).indices).mean()


@wrong("10.1", "no gradient: a Python number")
def as_a_number(model, windows):
    return scored(model(windows[:, :-1]), windows[:, 1:]).mean().item()


@wrong("10.1", "no gradient: cut off")
def cut_off(model, windows):
    return scored(model(windows[:, :-1]).detach(), windows[:, 1:]).mean()


@wrong("10.1", named="minus the probability")
def nll_of_probabilities(model, windows):
    return F.nll_loss(F.softmax(model(windows[:, :-1]), dim=2).mT, windows[:, 1:])


# --------------------------------------------------- 10.2 write


def read(model, ids):
    """The logits after the last letter, (B, V)."""
    return model(ids[:, -model.context_length :])[:, -1, :]


@wrong("10.2", named="more read than the model can")
def reads_all(model, ids, n, temperature, draw):
    for _ in range(n):
        p = F.softmax(model(ids)[:, -1] / temperature, dim=1)
        ids = torch.hstack([ids, draw(p)])
    return ids


@wrong("10.2", named="the first letters read, not the last")
def keeps_reading_the_start(model, ids, n, temperature, draw):
    most = model.context_length
    for _ in range(n):
        p = F.softmax(model(ids[:, :most])[:, -1] / temperature, dim=1)
        ids = torch.hstack([ids, draw(p)])
    return ids


@wrong("10.2", named="the first answer in the place of the last")
def first_answer(model, ids, n, temperature, draw):
    for _ in range(n):
        logits = model(ids[:, -model.context_length :])[:, 0, :]
        ids = torch.hstack([ids, draw(F.softmax(logits / temperature, dim=1))])
    return ids


@wrong("10.2", named="the last answer but one")
def last_but_one(model, ids, n, temperature, draw):
    for _ in range(n):
        logits = model(ids[:, -model.context_length :])[:, -2, :]
        ids = torch.hstack([ids, draw(F.softmax(logits / temperature, dim=1))])
    return ids


@wrong("10.2", named="multiplied by the temperature")
def times(model, ids, n, temperature, draw):
    for _ in range(n):
        ids = torch.hstack([ids, draw(F.softmax(temperature * read(model, ids), dim=1))])
    return ids


@wrong("10.2", named="temperature without effect")
def divided_too_late(model, ids, n, temperature, draw):
    for _ in range(n):
        p = F.softmax(read(model, ids), dim=1) / temperature
        ids = torch.hstack([ids, draw(p)])
    return ids


@wrong("10.2", named="softmax over the texts")
def over_texts(model, ids, n, temperature, draw):
    for _ in range(n):
        ids = torch.hstack([ids, draw(F.softmax(read(model, ids) / temperature, dim=0))])
    return ids


@wrong("10.2", named="the likeliest letter every time")
def greedy(model, ids, n, temperature, draw):
    for _ in range(n):
        p = F.softmax(read(model, ids) / temperature, dim=1)
        ids = torch.hstack([ids, p.max(dim=1, keepdim=True).indices])
    return ids


@wrong("10.2", named="every letter from the same guess")
def asks_once(model, ids, n, temperature, draw):
    p = F.softmax(read(model, ids) / temperature, dim=1)
    for _ in range(n):
        ids = torch.hstack([ids, draw(p)])
    return ids


@wrong("10.2", named="logits in the place of probabilities")
def no_softmax(model, ids, n, temperature, draw):
    for _ in range(n):
        ids = torch.hstack([ids, draw(read(model, ids) / temperature)])
    return ids


@wrong("10.2", named="only the new letters returned")
def new_letters(model, ids, n, temperature, draw):
    new = []
    for _ in range(n):
        p = F.softmax(read(model, ids) / temperature, dim=1)
        new.append(draw(p))
        ids = torch.hstack([ids, new[-1]])
    return torch.hstack(new)


@wrong("10.2", named="the beginning cut off")
def drops_letters(model, ids, n, temperature, draw):
    most = model.context_length
    for _ in range(n):
        if ids.shape[1] > most:
            ids = ids[:, -most:]
        p = F.softmax(model(ids)[:, -1] / temperature, dim=1)
        ids = torch.hstack([ids, draw(p)])
    return ids


@wrong("10.2", named="the beginning cut off before the loop")
def starts_with_the_last_letters(model, ids, n, temperature, draw):
    text = ids[:, max(0, ids.shape[1] - model.context_length) :]
    for _ in range(n):
        text = torch.hstack([text, draw(F.softmax(read(model, text) / temperature, dim=1))])
    return text


@wrong("10.2", named="the beginning cut off behind the loop")
def returns_what_the_model_can_read(model, ids, n, temperature, draw):
    for _ in range(n):
        p = F.softmax(read(model, ids) / temperature, dim=1)
        ids = torch.hstack([ids, draw(p)])
    return ids[:, ids.shape[1] - model.context_length :]


@wrong("10.2", named="the beginning cut off behind each letter")
def keeps_the_window(model, ids, n, temperature, draw):
    for _ in range(n):
        p = F.softmax(model(ids)[:, -1] / temperature, dim=1)
        ids = torch.hstack([ids, draw(p)])
        ids = ids[:, -model.context_length :]
    return ids


@wrong("10.2", named="only the last letter read")
def bigrams(model, ids, n, temperature, draw):
    for _ in range(n):
        p = F.softmax(model(ids[:, [-1]])[:, 0] / temperature, dim=1)
        ids = torch.hstack([ids, draw(p)])
    return ids


@wrong("10.2", named="written in front")
def in_front(model, ids, n, temperature, draw):
    for _ in range(n):
        p = F.softmax(read(model, ids) / temperature, dim=1)
        ids = torch.hstack([draw(p), ids])
    return ids


# --------------------------------------------------- 10.3 left-to-right loss


@wrong("10.3", named="all in one pass")
def one_pass(model, windows):
    logits = model(windows[:, :-1])
    T = logits.shape[1]
    return sum(F.cross_entropy(logits[:, t], windows[:, t + 1]) for t in range(T)) / T


@wrong("10.3", named="the answer is in the input")
def reads_the_answer(model, windows):
    T = windows.shape[1] - 1
    losses = [
        F.cross_entropy(model(windows[:, :t])[:, -1], windows[:, t - 1]) for t in range(2, T + 2)
    ]
    return sum(losses) / T


@wrong("10.3", named="the answer is in the input, one place later")
def answer_behind(model, windows):
    T = windows.shape[1] - 1
    losses = []
    for t in range(T):
        logits = model(windows[:, : t + 2])
        losses.append(F.cross_entropy(logits[:, t], windows[:, t + 1]))
    return torch.tensor(losses).mean()


@wrong("10.3", named="the first question left out")
def from_the_second(model, windows):
    T = windows.shape[1] - 1
    losses = [F.cross_entropy(model(windows[:, :t])[:, -1], windows[:, t]) for t in range(2, T + 1)]
    return torch.stack(losses).mean()


@wrong("10.3", named="the last question left out")
def stops_early(model, windows):
    T = windows.shape[1] - 1
    losses = [F.cross_entropy(model(windows[:, :t])[:, -1], windows[:, t]) for t in range(1, T)]
    return torch.stack(losses).mean()


@wrong("10.3", named="one letter read at a time")
def alone(model, windows):
    T = windows.shape[1] - 1
    losses = [F.cross_entropy(model(windows[:, [t]])[:, 0], windows[:, t + 1]) for t in range(T)]
    return torch.stack(losses).mean()


@wrong("10.3", named="all answers of each prefix")
def all_of_them(model, windows):
    total, T = 0.0, windows.shape[1] - 1
    for t in range(T):
        total += F.cross_entropy(model(windows[:, : t + 1]).mT, windows[:, 1 : t + 2])
    return total / T


@wrong("10.3", named="only the last question")
def at_the_end(model, windows):
    return F.cross_entropy(model(windows[:, :-1])[:, -1, :], windows[:, -1])


@wrong("10.3", named="the target has been read")
def asks_for_what_it_read(model, windows):
    T = windows.shape[1] - 1
    losses = [F.cross_entropy(model(windows[:, : t + 1])[:, -1], windows[:, t]) for t in range(T)]
    return torch.stack(losses).mean()


@wrong("10.3", named="the first answer in the place of the last")
def zeroth(model, windows):
    T = windows.shape[1] - 1
    losses = [F.cross_entropy(model(windows[:, :t])[:, 0], windows[:, t]) for t in range(1, T + 1)]
    return torch.stack(losses).mean()


@wrong("10.3", named="summed, not averaged")
def all_added(model, windows):
    total = 0
    for t in range(windows.shape[1] - 1):
        total += F.cross_entropy(model(windows[:, : t + 1])[:, -1], windows[:, t + 1])
    return total


@wrong("10.3", named="softmax before the cross-entropy")
def softened(model, windows):
    T = windows.shape[1] - 1
    losses = []
    for t in range(T):
        p = model(windows[:, : t + 1])[:, -1].softmax(-1)
        losses.append(F.cross_entropy(p, windows[:, t + 1]))
    return sum(losses) / len(losses)


@wrong("10.3", named="one letter skipped")
def two_ahead(model, windows):
    T = windows.shape[1] - 1
    losses = [F.cross_entropy(model(windows[:, :t])[:, -1], windows[:, t + 1]) for t in range(1, T)]
    return torch.stack(losses).mean()


@wrong("10.3", named="cut at the wrong side")
def from_t_on(model, windows):
    total, T = 0, windows.shape[1] - 1
    for t in range(T):
        total += F.cross_entropy(model(windows[:, t:T])[:, -1], windows[:, t + 1])
    return total / T


@wrong("10.3", named="later letters set to 0")
def zeroed(model, windows):
    total, T = 0, windows.shape[1] - 1
    for t in range(T):
        seen = windows[:, :-1] * (torch.arange(T) <= t)
        total += F.cross_entropy(model(seen)[:, t], windows[:, t + 1])
    return total / T


@wrong("10.3", named="its own guesses read")
def writes_on(model, windows):
    written, losses = windows[:, :1], []
    while written.shape[1] < windows.shape[1]:
        logits = model(written)[:, -1]
        losses.append(F.cross_entropy(logits, windows[:, written.shape[1]]))
        written = torch.hstack([written, logits.max(dim=1, keepdim=True).indices])
    return sum(losses) / len(losses)


@wrong("10.3", named="the last letter asked for every time")
def always_the_end(model, windows):
    T = windows.shape[1] - 1
    losses = [F.cross_entropy(model(windows[:, : t + 1])[:, -1], windows[:, T]) for t in range(T)]
    return torch.stack(losses).mean()


@wrong("10.3", named="only the first question")
def returns_too_early(model, windows):
    for t in range(windows.shape[1] - 1):
        return F.cross_entropy(model(windows[:, : t + 1])[:, -1], windows[:, t + 1])


@wrong("10.3", named="only the first window")
def one_window(model, windows):
    window, losses = windows[:1], []
    for t in range(window.shape[1] - 1):
        losses.append(F.cross_entropy(model(window[:, : t + 1])[:, -1], window[:, t + 1]))
    return sum(losses) / len(losses)


@wrong("10.3", named="answers averaged over the positions")
def mean_answers(model, windows):
    T = windows.shape[1] - 1
    losses = [
        F.cross_entropy(model(windows[:, :t]).mean(1), windows[:, t]) for t in range(1, T + 1)
    ]
    return torch.stack(losses).mean()


# --------------------------------------------------- wrong in ways that have no name


@wrong("10.1")
def in_bits(model, windows):
    return scored(model(windows[:, :-1]), windows[:, 1:]).mean() / math.log(2)


@wrong("10.2")
def one_letter_too_many(model, ids, n, temperature, draw):
    for _ in range(n + 1):
        p = F.softmax(read(model, ids) / temperature, dim=1)
        ids = torch.hstack([ids, draw(p)])
    return ids


@wrong("10.3")
def divided_by_the_letters(model, windows):
    total = 0
    for t in range(windows.shape[1] - 1):
        total += F.cross_entropy(model(windows[:, : t + 1])[:, -1], windows[:, t + 1])
    return total / windows.shape[1]
