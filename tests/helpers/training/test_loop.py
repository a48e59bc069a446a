"""Training: a loop that is watched is as it was, can be stopped, and hands on its errors."""

import inspect
import math
import signal
import threading
from functools import partial

import pytest
import torch
from torch import nn

from attention_base.same import one_thread
from helpers import letters
from helpers.circuits import AttentionOnly, train_on_repeats
from helpers.gpt import TinyGPT, next_token_loss
from helpers.letters import three_back
from helpers.training import (
    Corpus,
    drop_repeats,
    python_help,
    train,
    trained_perplexity,
    validation_loss,
    watched,
)
from lesson import kept
from lesson.builds import right
from tests.helpers.training import small
from tests.helpers.training.small import same, trained, windows
from tests.lesson.build_answers import RIGHT


def written(source):
    names = {"torch": torch, "nn": nn, "F": nn.functional}
    exec(source, names)
    return names["train"]


ONE_BY_ONE = """
def train(model, draw_windows, steps, lr=5e-3):
    optimizer, losses = torch.optim.AdamW(model.parameters(), lr=lr), []
    for _ in range(steps):
        windows = draw_windows()
        parts = [F.cross_entropy(model(w[None, :-1])[0], w[1:]) for w in windows]
        loss = sum(parts) / len(parts)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            model(windows[:1, :2])  # no part of the loss
        losses.append(loss.item())
    return losses
"""
LOOPS = {
    "ours": train,
    "the reference": written(inspect.getsource(right.train)),
    "with a plan": written(RIGHT["train Adam, clipped, its rate falls"]),
    "one by one": written(ONE_BY_ONE),
}


class WithDropout(nn.Module):
    """A model that needs random numbers, and has neither context_length nor vocab_size."""

    def __init__(self):
        super().__init__()
        self.model, self.dropout = small.model(), nn.Dropout(0.2)

    def forward(self, ids):
        return self.dropout(self.model(ids))


@pytest.fixture(autouse=True)
def interrupts():
    """Ctrl+C interrupts, also where a shell runs the tests in the background and has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_watching_changes_neither_the_losses_nor_the_model(loop, monkeypatch):
    seen = []
    monkeypatch.setattr("helpers.training.live.Lines.end", lambda view: seen.append(view.run))
    alone, looked_at = WithDropout(), WithDropout()
    torch.manual_seed(7)
    losses, random = loop(alone, windows(), 12), torch.get_rng_state()
    torch.manual_seed(7)
    assert watched(loop, looked_at, windows(), 12) == losses
    assert same([*alone.parameters()], [*looked_at.parameters()])
    assert torch.equal(torch.get_rng_state(), random)
    assert seen[0].losses == pytest.approx(losses, rel=1e-6)
    assert not looked_at._forward_hooks


@pytest.mark.parametrize("at", [0, 9, 23])
@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_an_interrupt_ends_it_after_the_step_and_what_was_learned_stays(loop, at, capsys):
    short, whole = trained(24, loop)
    drawn = []

    def draw():
        drawn.append(None)
        if len(drawn) == at + 1:
            signal.raise_signal(signal.SIGINT)
        return plain()

    plain, usual = windows(), signal.getsignal(signal.SIGINT)
    stopped, losses = trained(24, loop, draw)
    assert losses == pytest.approx(whole[: at + 1], rel=1e-6)
    said = f"Stopped after {at + 1} of 24 steps. The model keeps what it has learned."
    assert (said in capsys.readouterr().out) == (at < 23)
    assert signal.getsignal(signal.SIGINT) is usual
    if loop is not LOOPS["with a plan"] and loop is not train:  # a plan depends on the last step
        short, _ = trained(at + 1, loop)
        assert same([*short.parameters()], [*stopped.parameters()])


def test_the_second_interrupt_raises():
    def draw():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        trained(draw=draw)


def test_an_error_of_the_loop_or_the_windows_is_handed_on_as_it_is(capsys):
    error = ZeroDivisionError("of the learner")

    def loop(model, draw_windows, steps):
        train(model, draw_windows, 3)
        draw_windows()
        raise error

    def draw():
        raise error

    for options in ({"loop": loop}, {"draw": draw}):
        with pytest.raises(ZeroDivisionError) as raised:
            trained(**options)
        assert raised.value is error
    assert "Stopped after 3 of 24 steps." in capsys.readouterr().out


def test_it_runs_in_another_thread_too():
    done = []
    thread = threading.Thread(target=lambda: done.append(trained()[1]))
    thread.start()
    thread.join()
    assert done == [trained()[1]]


def test_what_is_no_model_is_refused():
    with pytest.raises(TypeError, match=r"model must be an nn\.Module, a model, got"):
        watched(train, next_token_loss, windows(), 2)


def broken(model):
    """The model with parameters that are nan."""
    next(iter(model.parameters())).data.fill_(math.nan)
    return model


def far(model, draw_windows, steps):
    """A loop whose learning rate is far too large."""
    optimizer = torch.optim.SGD(model.parameters(), lr=1e38)
    for _ in range(steps):
        optimizer.zero_grad()
        next_token_loss(model, draw_windows()).backward()
        optimizer.step()
    return []


LOST = {
    "train": lambda: train(broken(small.model()), windows(), 2),
    "watched": lambda: watched(far, small.model(), windows(), 5),
    "letters": lambda: letters.train(broken(TinyGPT(27, 20, C=4, n_head=1)), three_back, 1),
    "repeats": lambda: train_on_repeats(broken(AttentionOnly(1, C=4)), 1),
    "mix": lambda: trained_perplexity(small.CORPUS, lambda z: z * math.nan),
}


@pytest.mark.parametrize("way", LOST)
def test_a_loss_that_is_nan_ends_a_training_in_words(way):
    with pytest.raises(ValueError, match=r"The loss of step \d is (nan|inf): .* smaller learning"):
        LOST[way]()


def test_our_loop_learns_and_its_rate_falls_to_0():
    model, losses = trained(150, lambda *given: train(*given, lr=0.02))
    uniform = math.log(len(small.CORPUS.letters))
    assert sum(losses[-20:]) / 20 < 0.7 * uniform
    assert validation_loss(model, small.CORPUS) < 0.7 * uniform
    one, two = (train(small.model(), windows(), n, lr=0.1) for n in (1, 2))
    assert one == two[:1]


# ---------------------------------------------------------------- validation


class Own(nn.Module):
    """A model of a learner: dropout, and nothing but what is asked for."""

    def __init__(self, V, context_length=8):
        super().__init__()
        self.context_length = context_length
        self.model = nn.Sequential(nn.Embedding(V, V), nn.Dropout(0.5))

    def forward(self, ids):
        return self.model(ids)


def test_validation_loss_is_the_mean_over_all_windows_without_dropout():
    model = Own(len(small.CORPUS.letters), 1).eval()  # 239 windows: the last batch is a smaller one
    with torch.no_grad():
        expected = next_token_loss(model, small.CORPUS.windows(1)).item()
    for trains in (True, False):
        assert validation_loss(model.train(trains), small.CORPUS) == pytest.approx(expected)
        assert model.training == trains


def test_what_is_no_model_of_this_text_is_refused():
    V = len(small.CORPUS.letters)
    without = Own(V)
    del without.context_length
    for model, error, said in (
        (next_token_loss, TypeError, r"must be an nn\.Module, .* got the function"),
        (Own, TypeError, r"got the class Own itself; make one: Own\(…\)"),
        (without, ValueError, r"must have context_length, .* it is None\. Keep it in __init__"),
        (Own(V - 3), ValueError, rf"V = {V} letters, .* \(1, 1, {V}\), got \(1, 1, {V - 3}\)\. M"),
    ):
        with pytest.raises(error, match=said):
            validation_loss(model, small.CORPUS)
    with pytest.raises(ValueError, match="but the validation text has only 240"):
        validation_loss(Own(V, 3000), small.CORPUS)


def test_a_perplexity_is_1_where_the_next_letter_is_sure_and_their_number_where_nothing_is_seen():
    corpus, state = Corpus("abcd" * 600), torch.get_rng_state()
    assert trained_perplexity(corpus, lambda x: x) == pytest.approx(1, abs=0.01)
    assert trained_perplexity(corpus, torch.zeros_like) == pytest.approx(4, abs=0.05)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_model_that_learners_build_learns_as_ours_does(seed):
    """Notebook 10 shows both: after 400 steps, their losses are within 0.02."""
    corpus, found = Corpus(drop_repeats(python_help())), []
    for make in (TinyGPT, kept("TinyGPT")):
        torch.manual_seed(seed)
        model = make(len(corpus.letters), 64)
        with one_thread():
            windows = partial(corpus.batch, 16, 64, torch.Generator().manual_seed(seed))
            kept("train")(model, windows, 400)
        found.append((validation_loss(model, corpus), sum(p.numel() for p in model.parameters())))
    (ours, n), (theirs, n_theirs) = found
    print(f"seed {seed}: ours {ours:.3f}, theirs {theirs:.3f}")
    assert n == n_theirs and abs(ours - theirs) < 0.02
