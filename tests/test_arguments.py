"""Wrong arguments get words: whatever is given to what a notebook calls, for any argument.

Either a function takes the value, and gives no nan for it, or a `raise` of ours refuses it and
names the argument. No AttributeError, and no message of PyTorch or NumPy, from the depths.

Left out is what no page calls with arguments of its own, and switches such as return_weights.
"""

import math
import re
import traceback
from pathlib import Path

import numpy as np
import pytest
import torch

import attention_clinic as clinic
import explorers
import helpers.attention as attn
import lesson
from attention_base.numbers import number
from helpers import circuits, gpt, letters, measured, pictures, real, sorter, tasks, training, ward
from helpers.attention import Head, causal_mask
from helpers.cost import blockwise_attention, cache_bytes, seconds_of
from helpers.gpt import TinyGPT
from helpers.opened import opened
from helpers.positions import rotary, sinusoidal
from helpers.real.study import NotInstalled
from helpers.show import show
from helpers.stack import signal_by_depth
from helpers.toy import CAT_AND_SOUP, embed, numbers, readable
from tools import notebooks

OURS = tuple(f"{notebooks.ROOT / room}" for room in notebooks.ROOMS)
x = torch.randn(2, 4, 3, generator=torch.Generator().manual_seed(0))
weights = torch.softmax(x @ x.mT, dim=-1)[0]  # (4, 4)
leaf = torch.ones(2, 3, requires_grad=True)
looks = {
    "rows": ["a", "b", "c", "d"],
    "cols": "key",
    "mask": causal_mask(4),
    "center": 0.5,
    "vmin": 0,
    "vmax": 1,
    "annotate": True,
    "fmt": ".1f",
    "title": "title",
}
probe = {"function": lambda x: x.cumsum(dim=-2), "x": x, "atol": 1e-6}
random = torch.Generator().manual_seed(0)
ids = torch.randint(5, (2, 6), generator=random)
corpus = training.Corpus("ab cd. " * 600)
model, layers = TinyGPT(6, 20, C=4, n_head=2, n_layer=1), circuits.AttentionOnly(1, C=4)
spelling, sorting = TinyGPT(27, 20, C=4, n_head=2, n_layer=1), sorter.Sorter(4)
maps = torch.full((2, 1, 4, 4), 0.25)


def draw():
    return corpus.batch(2, 8)


def patched(model, layer, pattern):
    with circuits.patch(model, layer, pattern):
        model(ids[:, :4])


def ablated(model, layer, head):
    with circuits.ablate(model, layer, head):
        model(ids[:, :4])


# Each function with arguments that it takes; one after the other is replaced by an odd value.
CALLS = [
    (show, {"value": [1.0, 2.0], "label": "a", "decimals": 2}),
    (number, {"value": 1.5, "decimals": 2}),
    (numbers, {"C": 2, "seed": 1}),
    (readable, {"B": 2, "T": 3, "C": 2}),
    (rotary, {"x": x[0, :, :2], "positions": torch.arange(4), "base": 100.0}),
    (sinusoidal, {"T": 4, "C": 2}),
    (signal_by_depth, {"way": "plain", "depth": 2, "init": "default"}),
    (clinic.finite, {"values": weights}),
    (clinic.rows_sum_to_one, {"weights": weights, "atol": 1e-5}),
    (clinic.no_weight_on_future, {"weights": weights}),
    (clinic.no_leak, probe),
    (
        clinic.same_for_prefix,
        {"module_or_function": probe["function"], "x": x, "atol": 1e-6},
    ),
    (clinic.reach, probe | {"causal": True}),
    (clinic.sequences_stay_apart, probe),
    (clinic.gradients_reach, {"out": leaf * 2, "tensors": {"leaf": leaf}}),
    (clinic.matches_reference, {"got": weights, "expected": weights, "atol": 1e-5}),
    (
        clinic.diagnose,
        {"module_or_callable": Head(3, 2), "C": 3, "n_head": 1, "example": x, "causal": True},
    ),
    (pictures.heatmap, {"matrix": weights, "outline": [(0, 1)], "ax": None, **looks}),
    (
        pictures.heatmaps,
        {"matrices": {"a": weights}, "titles": ["a"], "outline": {"a": [(0, 1)]}, **looks},
    ),
    (pictures.sheets, {"x": x, "title": ""}),
    (
        pictures.row_times_column,
        {"A": weights, "B": weights, "row": 1, "col": 1, "names": ("A", "B"), "title": ""},
    ),
    (pictures.ribbon, {"T": 2, "n_head": 2, "head_size": 2, "title": ""}),
    (pictures.staircase, {"T": 4, "title": ""}),
    (pictures.turned_arrows, {"pairs": [(4, 1), (5, 2)], "degrees": 30, "title": ""}),
    (
        pictures.softmax_steps,
        {"scores": [1.0, 2.0], "allowed": [True, True], "labels": ["a", "b"], "title": ""},
    ),
    (
        pictures.why_this_weight,
        {"query": x[0, 0], "keys": x[0], "values": x[0], "j": 1, "words": ["a", "b", "c", "d"]},
    ),
    (
        pictures.curves,
        {"x": [1, 2], "panels": {"p": {"l": [1.0, 2.0]}}, "xlabel": "x", "logx": False}
        | {"logy": ["p"], "columns": 1, "statements": ["It rises."], "title": ""},
    ),
    (
        pictures.scatter,
        {"points": {"a": (1.0, 2.0)}, "xlabel": "x", "ylabel": "y", "diagonal": "equal"}
        | {"statements": ["It is high."], "title": ""},
    ),
    (
        pictures.bars,
        {"values": {"a": 1.5}, "xlabel": "x", "decimals": 2, "reference": "a"}
        | {"statements": ["It is long."], "title": ""},
    ),
    (lesson.series_map, {"current": "03"}),
    (explorers.explore_heads, {"x": torch.randn(4, 8), "n_head": 4}),
    (explorers.explore_moments, {"step": 80}),
    (explorers.explore_painter, {"word": "cab", "rule": "one back"}),
    (explorers.explore_prefix, {"x": x[0, :, :2]}),
    (
        explorers.explore_query,
        {"query": x[0, 0, :2], "keys": x[0, :, :2], "values": x[0, :, :2], "x": x[0]}
        | {"words": ["a", "b", "c", "d"]},
    ),
    (
        explorers.explore_sampling,
        {"model": TinyGPT(3, 4, C=4, n_head=1), "letters": "abc", "prompt": "ab"},
    ),
    (explorers.explore_weights, {"x": x[0], "words": ["a", "b", "c", "d"]}),
    (pictures.tables, {"on": False}),
    (pictures.head_diagram, {"B": "B", "T": 4, "C": 4, "head_size": 4, "value_size": 4}),
    (pictures.multi_head_diagram, {"n_head": 4, "B": "B", "T": "T", "C": "C"}),
    (pictures.guessed_next, {"outputs": torch.zeros(2, 2), "texts": ["a", "b"], "title": ""}),
    (
        pictures.weighted_sum,
        {"weights": [0.5, 0.5], "tokens": [[1.0, 2.0], [2.0, 1.0]], "labels": ["a", "b"]},
    ),
    (attn.attention, {"q": x, "k": x, "v": x, "mask": causal_mask(4), "dropout": 0.0}),
    (attn.causal_mask, {"T_q": 3, "T_k": 4}),
    (attn.window_mask, {"T": 4, "window": 2}),
    (attn.prefix_mask, {"T": 4, "n_prefix": 2}),
    (attn.padding_mask, {"real": ids > 0}),
    (attn.Head, {"C": 4, "head_size": 2}),
    (attn.FeedForward, {"C": 4}),
    (attn.MultiHeadAttention, {"C": 4, "n_head": 2}),
    (attn.Block, {"C": 4, "n_head": 2, "rotary": False}),
    (attn.MultiHeadAttention(3, 1).forward, {"x": x, "context": x, "mask": None}),
    (attn.KVCache, {"max_length": 4}),
    (blockwise_attention, {"q": x, "k": x, "v": x, "block_size": 2}),
    (cache_bytes, {"n_layer": 1, "n_kv_head": 1, "head_size": 2, "T": 3, "B": 1}),
    (seconds_of, {"model": model}),
    (clinic.assert_healthy, {"module_or_callable": Head(3, 2), "C": 3, "n_head": 1}),
    (circuits.certificate, {"rule": "my word", "first": "a-a", "second": "aaa"}),
    (
        circuits.learn_rule,
        {"rule": circuits.RULES["one back"], "head_size": 2, "seed": 0} | {"n_step": 1},
    ),
    (circuits.one_hot_tokens, {"word": "ab", "letters": "abc", "T": 4}),
    (
        circuits.score_from_blocks,
        {"letters": "ab", "T": 4, "blocks": {("letter", "letter"): torch.eye(2)}, "layer": 0},
    ),
    (circuits.second_layer_tokens, {"x": x[0], "weights": weights}),
    (circuits.written_weights, {"x": x[0], "M": torch.eye(3), "sharpness": 20.0}),
    (circuits.AttentionOnly, {"n_layer": 1, "n_head": 1, "n_letter": 4, "C": 8}),
    (patched, {"model": layers, "layer": 0, "pattern": torch.eye(4)}),
    (ablated, {"model": layers, "layer": 0, "head": 0}),
    (circuits.previous_token_score, {"weights": maps}),
    (circuits.induction_score, {"weights": maps, "period": 2}),
    (circuits.repeated, {"B": 2, "generator": random, "n_letter": 26, "distinct": False}),
    (circuits.held_out, {"n_letter": 26}),
    (circuits.copied_right, {"n_same": 1}),
    (circuits.on_known_letters, {"model": layers}),
    (circuits.tokens_back({1: 1.0}), {"T": 3}),
    (circuits.equal_weights, {"T": 3}),
    (circuits.letter_followers, {"ids": ids}),
    (circuits.tokens_back, {"shares": {1: 1.0}}),
    (circuits.followers, {"period": 2}),
    (
        circuits.train_on_repeats,
        {"model": layers, "n_step": 1, "learning_rate": 0.005} | {"watch": None, "distinct": False},
    ),
    (circuits.trained_on_repeats, {"name": "first layer by hand"}),
    (
        TinyGPT,
        {"vocab_size": 4, "context_length": 4, "C": 4, "n_head": 2, "n_layer": 1}
        | {"rotary": True},
    ),
    (model.forward, {"ids": ids, "mask": "causal", "cache": None}),
    (model.attention_weights, {"ids": ids, "mask": "causal"}),
    (
        model.generate,
        {"ids": ids, "n": 2, "temperature": 1.0, "top_k": 2, "generator": random}
        | {"cache": False},
    ),
    (gpt.next_token_loss, {"model": model, "windows": ids}),
    (gpt.next_token_probabilities, {"logits": x, "temperature": 1.0, "top_k": 2}),
    (gpt.encode, {"text": "ab", "letters": "abc"}),
    (gpt.decode, {"ids": ids[0], "letters": "abcde"}),
    (letters.encode, {"word": "ab"}),
    (letters.decode, {"ids": ids[0]}),
    (letters.backwards, {"B": 2, "generator": random, "start": False}),
    (letters.three_back, {"B": 2, "generator": random, "T": 8}),
    (letters.right_at, {"model": spelling, "task": letters.three_back, "mask": "causal"}),
    (
        letters.train,
        {"model": spelling, "task": letters.three_back, "n_step": 1}
        | {"learning_rate": 0.005, "falling": False},
    ),
    (measured.losses, {"n_step": 400}),
    (measured.both_losses, {"n_step": 400}),
    (opened, {"model": model, "ids": ids, "put": {(0, 1): torch.eye(6)}, "n_head": 2}),
    (sorter.Sorter, {"C": 8}),
    (sorter.alphabetical, {"B": 2, "generator": random}),
    (sorter.as_words, {"ids": ids}),
    (sorter.fill, {"words": ["ab", "c"]}),
    (sorter.sort, {"model": sorting, "ids": ids, "mask": None, "return_weights": False}),
    (sorting.forward, {"ids": ids, "written": ids, "mask": None}),
    (tasks.NounHeads, {"d": 2, "divisor": 1, "size": 1}),
    (tasks.noun_windows, {"n": 20, "seed": 0}),
    (tasks.word_numbers, {"texts": ["the cat"], "vocabulary": tasks.VOCABULARY}),
    (tasks.words_and_places, {"words": ids[:, :5]}),
    (tasks.first_word_and_word_before, {"words": ids[:, :5]}),
    (embed, {"text": "the cat", "channels": CAT_AND_SOUP}),
    (training.Corpus, {"text": "ab " * 1000}),
    (corpus.windows, {"T": 8}),
    (corpus.batch, {"B": 2, "T": 8, "generator": random}),
    (training.drop_repeats, {"text": "a"}),
    (training.read_text, {"path": "a.txt"}),
    (training.share_seen, {"corpus": corpus, "n": 2}),
    (training.counting_losses, {"corpus": corpus, "most": 1}),
    (training.validation_loss, {"model": model, "corpus": corpus}),
    (training.watched, {"train": training.train, "model": model, "draw_windows": draw, "steps": 1}),
    (training.train, {"model": model, "draw_windows": draw, "steps": 1, "lr": 0.005}),
    (training.trained_perplexity, {"corpus": corpus, "mix": lambda z: z}),
    (training.save_model, {"path": "a.pt", "model": model, "letters": "abcdef", "half": False}),
    (training.load_model, {"path": "a.pt"}),
    (ward.Attention, {"C": 8, "n_head": 2, "n_kv_head": 1}),
    (ward.around, {"attend": lambda q, k, v: v}),
    (ward.ask, {"make": ward.Attention, "questions": ["shape"]}),
    (ward.broken, {"name": "heads tiled"}),
    (ward.matrix, {"names": [None]}),
    (ward.with_attention, {"model": model, "make": ward.Attention}),
    (lesson.as_pytorch, {"attention": attn.MultiHeadAttention(4, 2), "C": 4, "n_head": 2}),
    (lesson.earlier, {"name": "Head"}),
    (lesson.glossary, {"term": "head"}),
    (explorers.explore_context, {"read": ["a b c"], "starts": ["a b"]}),
    (real.next_words, {"text": "the cat was warm so it", "n": 5}),
    (real.log_odds, {"text": "the cat was warm so it"}),
    (real.maps_of, {"text": "the cat was warm so it"}),
]
ODD = {
    "None": None,
    "minus one": -1,
    "a half": 0.5,
    "nan": math.nan,
    "True": True,
    "a word": "0",
    "no word": "",
    "an empty list": [],
    "a pair": (0, 1),
    "a list of None": [None, None],
    "an empty dict": {},
    "a set": {1, 2},
    "an object": object(),
    "a number": torch.tensor(3.0),
    "a vector": torch.ones(4),
    "complex": torch.ones(4, 4, dtype=torch.complex64),
    "bool": torch.ones(4, 4, dtype=torch.bool),
    "words": np.array([["a"] * 4] * 4),
    "sparse": torch.eye(4).to_sparse(),
    "meta": torch.ones(4, 4, device="meta"),
    "3-D": x,
    "3-D, complex": x + 0j,
    "3-D, sparse": x.to_sparse(),
    "3-D, meta": x.to("meta"),
    "3-D, nan": x * math.nan,
    "zero": 0,
    "inf": math.inf,
    "too large": 1e38,
    "ids": torch.zeros(2, 6, dtype=torch.long),
    "ids that nobody has": torch.full((2, 6), 10**6),
    "negative ids": torch.full((2, 6), -1),
    "no rows": torch.zeros(0, 6, dtype=torch.long),
}


# What an argument is called as well.
ALSO = {"letters": ["V"], "windows": ["ids"], "starts": ["the texts"], "x": ["channels"]}
ALSO |= {"module_or_callable": ["diagnose"], "path": ["folder", "Directory", "directory"]}
REFUSED = (TypeError, ValueError, OSError, lesson.LessonError)


def complaint(function, arguments, drawn, odd=""):
    """What is wrong with how these arguments are refused; "" where they are taken."""
    try:
        shown = function(**arguments)
        if isinstance(shown, pictures.Picture):
            shown.png() if drawn else shown.html()
        if holds_nan(shown) and not any(map(holds_nan, arguments.values())):
            return "it gives nan"
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        by_us = last.filename.startswith(OURS) and "raise" in last.line
        if by_us and isinstance(error, NotInstalled):
            return ""  # whatever the text is, its answer is not stored
        if not (by_us and isinstance(error, REFUSED)):
            return f"{type(error).__name__}: {error} ({last.filename}:{last.lineno})"
        if odd and not names(str(error), odd, function, arguments):
            return f"does not say that it is {odd}: {error}"
    return ""


def holds_nan(value):
    """Whether something holds a number that is nan."""
    if isinstance(value, torch.Tensor):
        plain = value.is_floating_point() and value.layout == torch.strided and not value.is_meta
        return plain and bool(value.isnan().any())
    if isinstance(value, (list, tuple)):
        return any(map(holds_nan, value))
    return isinstance(value, float) and math.isnan(value)


def names(message, argument, function, arguments):
    """Whether a message says which argument it is about, the first one also by the function."""
    own = [argument, argument.removesuffix("s"), function.__name__, *ALSO.get(argument, ())]
    if argument == next(iter(arguments)) or argument == "expected":  # "(4, 4) and ()"
        own += ["values", "probe", "allowed", "one panel", "shapes"]
    named = any(re.search(rf"\b{re.escape(name)}\b", message) for name in own)
    return named or repr(arguments[argument]) in message


@pytest.fixture(autouse=True)
def put_back(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ATTENTION_REAL", "0")
    training.save_model("a.pt", model, "abcdef")
    Path("a.txt").write_text("text", encoding="utf-8")
    yield
    pictures.tables(False)


@pytest.mark.parametrize("drawn", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("function", "arguments"), CALLS, ids=lambda one: getattr(one, "__name__", "with")
)
def test_wrong_arguments_are_refused_in_words(function, arguments, drawn, capsys):
    assert complaint(function, arguments, drawn) == "", "the arguments that it takes"
    found = {
        (argument, name): said
        for argument in arguments
        for name, odd in ODD.items()
        if (said := complaint(function, arguments | {argument: odd}, drawn, argument))
    }
    assert not found
