import json

import pytest
import torch

from attention_base.numbers import number
from explorers import explore_sentence
from explorers.sentence import TEXTS
from helpers.pictures.table import Cell, Table
from helpers.real import study
from tests.explorers.reading import controls, heat, near, now

STORED = json.loads(study.ANSWERS.read_text(encoding="utf-8"))


def model(text):
    words = [(word.strip() or "' '", p) for word, p in STORED[f"next_words({text!r}, 8)"]]
    tokens, heads = STORED[f"last_looks({text!r}, 5)"]
    bars = [(word, [Cell(number(p), bar=near(120 * p))]) for word, p in words]
    likely = Table(["probability"], bars, corner="next word")
    rows = heat(torch.tensor([row for *_, row in heads], dtype=torch.double))
    names = [f"{block}.{head}" for block, head, _ in heads]
    over = "what the last token attends to"
    looks = Table(tokens, list(zip(names, rows, strict=True)), corner="block.head", over=over)
    told = []
    for block, head, row in heads:  # the first token is a sink, and the last two are near
        weight, token = max(zip(row[1:-2], tokens[1:-2], strict=True))
        told.append(f"head {head} of block {block} to “{token}” with {number(weight)}")
    said = ", ".join(f"“{word}” {number(p)}" for word, p in words)
    told = f"Likeliest next words: {said}. The last token attends: {'; '.join(told)}."
    return [f"“{text}”. {told}", likely, looks, told]


CONTROLS = {"text": (TEXTS[0], TEXTS)}
CASES = [({}, [(text,) for text in TEXTS])]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "The text is empty. Write some words"),
        ("  ", "The text is empty. Write some words"),
        ("word " * 60, "The text has 299 letters; at most 200 can be shown"),
        ("the dog was warm so it", "This asks the model itself, which is not installed"),
    ],
)
def test_a_text_without_an_answer_is_told_in_words_and_the_next_one_is_shown(
    text, told, monkeypatch
):
    monkeypatch.setenv("ATTENTION_REAL", "0")
    explorer = explore_sentence()
    controls(explorer)["text"].value = text
    assert 'role="alert"' in explorer.view.value and told in explorer.view.value
    assert now(explorer).startswith("this setting cannot be drawn, ") and told in now(explorer)
    assert "Traceback" not in explorer.view.value
    controls(explorer)["text"].value = TEXTS[1]
    assert now(explorer) == model(TEXTS[1])[0]
    controls(explorer)["text"].value = f"{TEXTS[0]} "  # a blank behind it changes no answer
    assert now(explorer) == model(TEXTS[0])[0]
