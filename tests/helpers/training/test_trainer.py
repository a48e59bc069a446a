"""Training: against a plain loop, stopped and resumed, diverging, and what it refuses."""

import math
import re
import signal
import threading
from functools import cache

import pytest
import torch

from helpers.gpt import decode, encode, next_token_loss
from helpers.training import Corpus, Trainer, trained_perplexity, validation_loss
from tests.helpers.training import small
from tests.helpers.training.small import interrupted_at, same, state, trainer


def run(trainer, prompt=None):
    trainer.run(prompt)
    return trainer


@cache
def finished():
    """A run without a break, and without samples."""
    return run(trainer())


def test_it_takes_the_steps_of_a_plain_loop():
    trained = run(trainer(12, learning_rate=0.02, seed=3))
    model, generator = small.model(), torch.Generator().manual_seed(3)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    text, losses = encode(small.CORPUS.training, small.CORPUS.letters), []
    torch.set_num_threads(1)
    for step in range(12):
        optimizer.param_groups[0]["lr"] = 0.02 * (1 - step / 12)
        starts = torch.randint(len(text) - 8, (4, 1), generator=generator).flatten().tolist()
        loss = next_token_loss(model, torch.stack([text[i : i + 9] for i in starts]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert trained.losses == losses and trained.step == 12
    assert same([*trained.model.parameters()], [*model.parameters()])


def test_it_learns():
    trained = run(trainer(150, learning_rate=0.02))
    uniform = math.log(len(small.CORPUS.letters))
    assert sum(trained.losses[-20:]) / 20 < 0.7 * uniform
    assert validation_loss(trained.model, small.CORPUS) < 0.7 * uniform


def test_with_samples_it_learns_the_same():
    torch.manual_seed(9)
    quiet, before = run(trainer()), torch.random.get_rng_state()
    torch.manual_seed(9)
    writes = run(trainer(), "the for ")
    assert quiet.losses == writes.losses and same(state(quiet), state(writes))
    assert torch.equal(before, torch.random.get_rng_state())  # nobody else's numbers either
    assert quiet.samples == {} and list(writes.samples) == [0, 3, 6, 12, 24]
    source = torch.Generator().manual_seed(0)
    last = writes.model.generate(
        encode("the for ", small.CORPUS.letters)[None], 60, 0.8, generator=source
    )
    assert writes.samples[24] == decode(last[0], small.CORPUS.letters)
    assert len(set(writes.samples.values())) == 5


@pytest.fixture(autouse=True)
def interrupts():
    """Ctrl+C interrupts, also where a shell runs the tests in the background and has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("at", [0, 9, 23])
def test_an_interrupt_ends_it_after_the_step_and_run_goes_on(at, capsys):
    whole = run(trainer(), "the ")
    stopped = run(trainer(loss_of=interrupted_at(at)), "the ")
    assert stopped.step == at + 1 and stopped.losses == whole.losses[: at + 1]
    said = f"Stopped after {at + 1} of 24 steps; run() goes on from there."
    assert (said in capsys.readouterr().out) == (at < 23)
    run(stopped, "the ")
    assert stopped.losses == whole.losses and stopped.samples == whole.samples
    assert same(state(stopped), state(whole))
    assert run(whole).step == 24  # nothing is left to do


def test_the_second_interrupt_raises_and_leaves_the_state_before_the_step():
    whole, usual = finished(), signal.getsignal(signal.SIGINT)
    stopped = trainer(loss_of=interrupted_at(9, calls=2))
    with pytest.raises(KeyboardInterrupt):
        stopped.run()
    assert stopped.step == 9 and stopped.losses == whole.losses[:9]
    assert signal.getsignal(signal.SIGINT) is usual
    assert run(stopped).losses == whole.losses and same(state(stopped), state(whole))


def test_an_interrupt_in_the_middle_of_an_update_takes_it_back(monkeypatch):
    whole, stopped = finished(), trainer()
    step = torch.optim.AdamW.step

    def half(optimizer):
        step(optimizer)
        if stopped.step == 5:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(torch.optim.AdamW, "step", half)
        stopped.run()
    assert stopped.step == 5 and run(stopped).losses == whole.losses
    assert same(state(stopped), state(whole))


def test_it_runs_in_another_thread_too():
    whole, other = finished(), trainer()
    thread = threading.Thread(target=other.run)
    thread.start()
    thread.join()
    assert other.losses == whole.losses


def test_it_computes_on_one_thread_and_leaves_the_setting_as_it_was():
    seen = []

    def loss_of(model, windows):
        seen.append(torch.get_num_threads())
        return next_token_loss(model, windows)

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        run(trainer(2, loss_of=loss_of))
        validation_loss(small.model(), small.CORPUS, loss_of)
        assert set(seen) == {1} and torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


# ---------------------------------------------------------------- divergence


def test_a_learning_rate_that_diverges_stops_with_the_last_good_state():
    wild = trainer(60, learning_rate=1e4)
    with pytest.raises(FloatingPointError) as error:
        wild.run()
    found = re.fullmatch(
        r"The loss is nan at step (\d+) with the learning rate 10000\. The model has the "
        r"parameters of step (\d+), the last with a finite loss; use a smaller learning rate, "
        r"such as 1000\.",
        str(error.value),
    )
    at = int(found[1])
    assert 1 <= at < 60 and int(found[2]) == wild.step == len(wild.losses) == at - 1
    assert all(map(math.isfinite, wild.losses))
    assert all(tensor.isfinite().all() for tensor in state(wild))
    before = trainer(60, learning_rate=1e4, loss_of=interrupted_at(at - 2))
    assert same(state(run(before)), state(wild)) and before.losses == wild.losses
    with torch.no_grad():
        windows = small.CORPUS.batch(4, 8, torch.Generator().manual_seed(0))
        assert next_token_loss(wild.model, windows).isfinite()
    wild.learning_rate = 1e-3  # run goes on from there
    assert run(wild).step == 60


def loss_with(value, at, gradient=False):
    """A loss that is nan or inf at one step, or whose gradient is."""
    steps = []

    def loss_of(model, windows):
        steps.append(None)
        loss = next_token_loss(model, windows)
        if len(steps) != at + 1:
            return loss
        return loss + (0 * loss).sqrt() if gradient else loss * value

    return loss_of


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_no_number_takes_the_step_before_back(value):
    whole, broken = finished(), trainer(loss_of=loss_with(value, at=7))
    with pytest.raises(FloatingPointError, match=f"loss is {value} at step 7 .* of step 6, the"):
        broken.run()
    assert broken.losses == whole.losses[:6]
    assert run(broken).losses == whole.losses and same(state(broken), state(whole))


def test_a_gradient_that_is_no_number_is_not_used():
    whole, broken = finished(), trainer(loss_of=loss_with(None, at=7, gradient=True))
    with pytest.raises(FloatingPointError, match=r"gradient holds nan .* step 7 .* of step 7, the"):
        broken.run()
    assert broken.losses == whole.losses[:7]
    assert run(broken).losses == whole.losses and same(state(broken), state(whole))


def test_without_a_step_before_it_says_where_to_look():
    broken = trainer(loss_of=loss_with(math.nan, at=0))
    with pytest.raises(FloatingPointError, match=r"step 0 .* look for nan or inf in the param"):
        broken.run()
    assert broken.step == 0 and run(broken).step == 24


def test_a_last_step_that_diverges_is_taken_back():
    wild = trainer(1, learning_rate=1e30)
    with pytest.raises(FloatingPointError, match="output of the model is nan or inf at step 1"):
        wild.run("the ")
    assert wild.step == 0 and same([*wild.model.parameters()], [*small.model().parameters()])
    assert list(wild.samples) == [0]


def test_a_model_with_nan_is_not_trained():
    broken = trainer()
    with torch.no_grad():
        broken.model.norm.weight[0] = math.nan
    with pytest.raises(FloatingPointError, match="look for nan or inf in the parameters"):
        broken.run("the ")


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"n_step": 0}, ValueError, "n_step must be a whole number of at least 1, got 0"),
        ({"n_step": 2.5}, TypeError, "n_step must be a whole number of at least 1"),
        ({"B": 0}, ValueError, "B must be a whole number of at least 1, got 0"),
        ({"B": "4"}, TypeError, "B must be a whole number"),
        ({"learning_rate": 0}, ValueError, "learning_rate must be above 0, got 0"),
        ({"learning_rate": -0.1}, ValueError, "learning_rate must be above 0, got -0.1"),
        ({"learning_rate": math.nan}, ValueError, "learning_rate must be a finite number, got nan"),
        ({"learning_rate": None}, TypeError, "learning_rate must be a finite number, got None"),
        ({"seed": -1}, ValueError, "seed must be a whole number from 0"),
    ],
)
def test_numbers_that_cannot_be_are_refused(options, error, said):
    with pytest.raises(error, match=said):
        Trainer(small.model(), small.CORPUS, **({"n_step": 4} | options))


def test_a_model_for_another_vocabulary_is_refused():
    other = Corpus(small.text() + "XYZ")
    V = len(small.CORPUS.letters)
    for use in (
        lambda: Trainer(small.model(), other, 1),
        lambda: validation_loss(small.model(), other),
    ):
        with pytest.raises(ValueError, match=f"has V = {V + 3} letters, .* was made for {V}"):
            use()


def test_a_text_without_room_for_a_window_is_refused_before_training():
    long = small.model(context_length=3000)
    with pytest.raises(ValueError, match="3,001 letters, but the training text has only 2,160"):
        Trainer(long, small.CORPUS, 1)
    with pytest.raises(ValueError, match="but the validation text has only 240"):
        validation_loss(long, small.CORPUS)


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        (lambda loss: loss.item(), TypeError, "one number, got the float .* without .item()"),
        (lambda loss: None, TypeError, "one number, got None"),
        (lambda loss: loss.detach(), ValueError, "has no gradient"),
        (lambda loss: loss.expand(3), ValueError, r"got the shape \(3,\). Return its mean"),
    ],
)
def test_what_is_no_loss_is_refused_and_changes_nothing(change, error, said):
    whole, broken = finished(), trainer()
    broken.loss_of = lambda model, windows: change(next_token_loss(model, windows))
    with pytest.raises(error, match=said):
        broken.run()
    assert broken.step == 0
    broken.loss_of = next_token_loss
    assert run(broken).losses == whole.losses


def test_validation_loss_is_the_mean_over_all_windows():
    model = small.model(context_length=1)  # 239 windows: the last batch is a smaller one
    with torch.no_grad():
        expected = next_token_loss(model, small.CORPUS.windows(1)).item()
    assert validation_loss(model, small.CORPUS) == pytest.approx(expected, rel=1e-6)
    with pytest.raises(ValueError, match=r"got the shape \(64,\). Return its mean"):
        validation_loss(model, small.CORPUS, lambda model, windows: windows[:, 0].float())


def test_a_prompt_that_cannot_be_read_is_refused_before_training():
    for prompt, said in (("", "at least one letter"), ("Žluť", "never seen 'l', 'Ž'|never seen")):
        refused = trainer()
        with pytest.raises(ValueError, match=said):
            refused.run(prompt)
        assert refused.step == 0


def test_a_prompt_longer_than_the_context_is_continued_as_a_whole():
    trained = run(trainer(4), "the for loop averages all tokens")
    assert all(len(text) == 32 + 60 for text in trained.samples.values())


def test_a_perplexity_is_1_where_the_next_letter_is_sure_and_their_number_where_nothing_is_seen():
    corpus, state = Corpus("abcd" * 600), torch.get_rng_state()
    assert trained_perplexity(corpus, lambda x: x) == pytest.approx(1, abs=0.01)
    assert trained_perplexity(corpus, torch.zeros_like) == pytest.approx(4, abs=0.05)
    assert torch.equal(torch.get_rng_state(), state)
