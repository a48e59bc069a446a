import itertools
import string

import pytest
import torch
from torch import nn

from attention_base.numbers import number
from explorers import explore_sampling
from helpers.gpt import TinyGPT
from helpers.pictures.table import Cell, Table
from tests.explorers.reading import controls, drawing, near, now, words

LETTERS = "\t\n " + string.ascii_lowercase + "\x0c"
INK = {" ": "␣ (space)", "\n": "⏎ (line end)", "\t": "⇥ (tab)", "\x0c": "'\\x0c'"}
PROMPT = "the cat\n"


def gpt(V, seed=0):
    """A model with clear preferences, as after training."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        made = TinyGPT(V, 12, C=8, n_head=2, n_layer=1)
        with torch.no_grad():
            made.to_logits.weight.mul_(4)
    return made


class Own(nn.Module):
    """A learner's model: ids to logits, and how many letters it reads."""

    context_length = 12

    def __init__(self, V):
        super().__init__()
        self.model, self.dropout = gpt(V), nn.Dropout(0.5)

    def forward(self, ids):
        return self.dropout(self.model(ids))


GPT, SMALL = gpt(len(LETTERS)), Own(4)


def model(gpt, letters, first, prompt, temperature, top_k):
    ids = [letters.index(letter) for letter in prompt][-12:]
    with torch.no_grad():
        logits = gpt.eval()(torch.tensor([ids]))[0, -1].double()
        gpt.train()
    ranked = sorted(range(len(letters)), key=lambda i: -logits[i])
    kept = ranked if top_k == "all" else ranked[:top_k]
    own = dict(enumerate((logits.exp() / logits.exp().sum()).tolist()))
    powers = {i: own[i] ** (1 / temperature) for i in kept}
    drawn = {i: power / sum(powers.values()) for i, power in powers.items()}
    rows, told = [], []

    def row(name, ids):
        before, after = sum(own[i] for i in ids), sum(drawn.get(i, 0) for i in ids)
        text = number(after) + " (left out)" * (ids[0] not in kept)
        told.append(f"{name} {number(before)} → {text}")
        bars = Cell(number(before), bar=near(160 * before)), Cell(text, bar=near(160 * after))
        rows.append((name, list(bars)))

    names = [INK.get(letter, f"“{letter}”") for letter in letters]
    for i in ranked[:10]:
        row(names[i], [i])
    if ranked[10:]:
        row(f"{len(ranked) - 10} others", ranked[10:])
    setting = f"temperature {number(temperature, 1)}"
    if top_k != "all":
        setting += f" and top-k {top_k}"
    seen = prompt.replace(" ", "␣").replace("\n", "⏎").replace("\t", "⇥")
    best = ranked[0]
    seen = seen if len(seen) <= 24 else f"…{seen[-24:]}"
    texts = [
        f"After “{seen}”, the likeliest letter is {names[best]} with {number(own[best])}; at "
        f"{setting} it has {number(drawn[best])}."
    ]
    if len(kept) < len(letters):
        count = "1 letter" if top_k == 1 else f"{top_k} letters"
        share = number(sum(own[i] for i in kept))
        texts.append(f"Top-k leaves {count}, with {share} of the model's own probability.")
    if len(prompt) > 12:
        texts.append(f"The model reads only the last 12 of {len(prompt)} letters.")
    said = f"{' '.join(texts)} The model's own probabilities → at {setting}: {', '.join(told)}."
    table = Table(["the model's own", setting], rows, corner="next letter", over="probability")
    return [said, table, *texts]


K = (*range(1, 11), "all")
CONTROLS = {"prompt": (PROMPT, ()), "temperature": (1.0, (0.1, 2.0, 0.1)), "top-k": ("all", K)}
PROMPTS = (PROMPT, "a", "\t", "the dog and the cat sat down")
CASES = [
    (
        {"model": GPT, "letters": LETTERS, "prompt": PROMPT},
        [*itertools.product(PROMPTS, (0.1, 0.7, 1.0, 2.0), (1, 3, 10, "all"))]
        + [(PROMPT, 1.0, k) for k in K],
    ),
    (
        {"model": SMALL, "letters": "ab c", "prompt": "a"},
        itertools.product(("a", "cab"), (0.5, 2.0), (1, 3, 4, "all")),
    ),
]
REFUSED = [
    (
        {"model": GPT, "letters": "abc", "prompt": "a"},
        r"V = 3 letters, .* \(1, 1, 3\), got \(1, 1, 30\)\. Make",
    ),
]


@pytest.mark.parametrize(
    ("prompt", "told"),
    [("", "The prompt is empty. Write"), ("Ah", "The model has never seen 'A'; leave such")],
)
def test_a_prompt_that_cannot_be_read_is_told_in_words_and_goes_away(prompt, told):
    explorer = explore_sampling(GPT, LETTERS, PROMPT)
    before = explorer.view.value
    controls(explorer)["prompt"].value = prompt
    assert 'role="alert"' in explorer.view.value and "cannot be drawn" in now(explorer)
    assert told in now(explorer)
    controls(explorer)["prompt"].value = PROMPT
    assert explorer.view.value == before


def test_a_vocabulary_of_few_letters_has_no_larger_top_k_and_no_others():
    explorer = explore_sampling(SMALL, "ab c", "a")
    assert controls(explorer)["top-k"].options == (1, 2, 3, 4, "all")
    assert "others" not in words(drawing(explorer))
