"""Notebook 15: a real model.

What it has said is stored, since tests run without it: its answers to the notebook's questions,
and what benchmarks/real.py has measured.
"""

import math

import torch

from helpers.measured import measured
from helpers.real import (
    ANIMALS,
    FOODS,
    log_odds,
    log_odds_with_maps,
    log_odds_with_vector_of,
    maps_of,
    next_words,
)
from tests.lesson.proofs import proves, run, written

CAT, SOUP = "the cat was warm so it", "the soup was warm so it"
NOUN, LAST = 1, -1  # places of tokens


def of(part):
    """What was measured of a part of the notebook."""
    return measured("real")["runs"][part]


def best_heads():
    """The 16 that the notebook takes, (block, head)."""
    return [tuple(place) for place in of("heads")["order"][:16]]


@proves("15.p1")
def likeliest_next_word(texts):
    assert texts["question"].quoted() == [CAT]
    words = next_words(CAT, 8)
    (slept,), (cooled,) = texts["why a"].gives(), texts["why d"].gives()
    _, least = words[-1]  # of these 8; “slept” is the 15th, with 0.012
    assert slept < least and least / math.exp(log_odds(CAT)) < cooled < slept
    return {texts[name].text: texts[name].text == words[0][0].strip() for name in "abcd"}


@proves("15.p2")
def where_it_takes_over(texts):
    assert texts["question"].gives() == [len([CAT, SOUP])]
    high, low = log_odds(CAT), log_odds(SOUP)
    before = range(0, 31, 2)  # as in the notebook
    runs = torch.stack([log_odds_with_vector_of(CAT, SOUP, block) for block in before])
    share = (high - runs) / (high - low)  # (before block, token)
    ahead = share[:, LAST] > share[:, NOUN]
    first = before[ahead.nonzero().min()]  # the notebook looks at every second block here
    at_once, early, late = (texts[name].gives()[0] for name in "abc")
    assert first == late and ahead[before.index(first) :].all()
    brought = share[:, LAST].diff()
    assert brought.max() < 0.3, "why c: not in one block"
    return {
        "a": first <= at_once,
        f"about block {early}": 2 <= first <= early + 4,
        f"about block {late}": first >= late - 2,
        "never": not ahead.any(),
    }


@proves("15.p3")
def maps_of_the_other_run(texts):
    (pairs,) = texts["question"].gives()
    of_animals, of_foods = (
        torch.tensor([log_odds(CAT.replace("cat", noun)) for noun in nouns])
        for nouns in (ANIMALS, FOODS)
    )
    falls = of_animals[:, None] - of_foods  # from each animal to each food
    moved = torch.tensor(of("swapped")["of the mean effect"]["maps"]) * falls.mean()
    assert falls.shape == moved.shape and falls.numel() == pairs
    share, mean = moved / falls, (moved.mean() / falls.mean()).item()
    (half,) = texts["b"].gives()
    assert abs(share[0, 0] - half) < 0.15  # why b
    assert share.max() > 1, "why d: single numbers can overshoot"
    for text in (CAT, SOUP):  # why a: in block 13
        assert maps_of(text)[13, 8, LAST].argmax() == NOUN
    return {
        "nearly all": 0.9 < mean < 1.1,
        "half": abs(mean - half) < 0.2,
        "hardly anything": abs(mean) < 0.1,
        "more than all": mean > 1.1,
    }


def difference(heads):
    """Of cat and soup, if in these heads the last token attends to the noun alone.

    All other maps are held as they were.
    """
    found = []
    for text in (CAT, SOUP):
        own = maps_of(text)
        own /= own.sum(dim=-1, keepdim=True)  # stored with three decimals
        put = {divmod(i, 9): one.clone() for i, one in enumerate(own.flatten(0, 1))}
        for place in heads:
            put[place][LAST] = torch.eye(6)[NOUN]
        found.append(log_odds_with_maps(text, put))
    return found[0] - found[1]


@proves("15.p4")
def the_row_that_was_wanted(texts):
    wanted_in, some, every, before = texts["question"].gives()
    assert wanted_in == "00"
    everywhere = [(block, head) for block in range(30) for head in range(9)]
    assert len(best_heads()) == some and len(everywhere) == every
    as_it_is = log_odds(CAT) - log_odds(SOUP)
    in_some, in_all = map(difference, (best_heads(), everywhere))
    assert abs(as_it_is - before) < 0.005
    own = maps_of(CAT)[..., LAST, NOUN]
    assert sum(own[place] for place in best_heads()) / some < 0.5  # why c
    for name in ("why a", "why b", "why d"):
        texts[name].says(some)
    larger, a_tenth = in_some > 1.5 * as_it_is, round(in_all / as_it_is, 1) == 0.1
    return {
        "still larger": larger and in_all > in_some,
        "larger, then about a tenth": larger and a_tenth,
        "hardly changed": abs(in_some / as_it_is - 1) < 0.2,
        "smaller": in_some < 0.8 * as_it_is,
    }


@proves("15.p5")
def the_first_token_hidden(texts):
    (start,) = texts["question"].gives()
    assert texts["b"].gives() == texts["why c"].gives() == [start]
    loss = {name: torch.tensor(values) for name, values in of("sinks")["loss"].items()}
    of_all = loss["first hidden"] - loss["as it is"]
    later = loss[f"hidden from {start} on"] - loss["as it is"]
    assert of_all.abs().max() < 0.05 and later.min() > 0.5  # in each passage
    (half,) = texts["why d"].gives()
    first = torch.tensor(of("sinks")["share of the first token"])  # (30, 9)
    assert abs(first[12:].mean() - half) < 0.02 < first[12:].mean() - first[:12].mean()
    second = of("sinks")["share of the second token"]
    assert min(second["first hidden"]) > 0.3, "why a: another one takes its part"
    assert max(second[f"hidden from {start} on"]) < 0.05, "why b"
    return {
        "hidden from all": of_all.mean() > later.mean() + 0.1,
        "hidden from 32 on": later.mean() > of_all.mean() + 0.1,
        "both": of_all.mean() > 0.1 and (of_all - later).mean().abs() < 0.1,
        "neither": max(of_all.mean(), later.mean()) < 0.1,
    }


@proves("15.p6")
def how_many_heads_it_takes(texts):
    ranked = of("heads")
    best, drawn = (torch.tensor(ranked[name]).mean(1) for name in ("best", "random"))
    lost = dict(zip(ranked["k"], best.tolist(), strict=True))
    *_, every, share = texts["question"].gives()
    assert every == ranked["k"][-1]
    enough = min(k for k, of_gap in lost.items() if of_gap >= share)
    texts["a"].says(2), texts["b"].says(enough)
    texts["why a"].says(lost[1], 2, lost[2])
    texts["why b"].says(8, lost[8], enough, lost[enough])
    texts["why c"].says(enough, lost[enough])
    n, half = texts["why d"].gives()
    assert abs(drawn[ranked["k"].index(n)] - half) < 0.03
    assert drawn[ranked["k"].index(texts["c"].gives()[0])] < half  # why c
    return {
        "about 2": enough <= 4,
        "about 16": 8 < enough < 32,
        "about 64": 32 <= enough < 128,
        "nearly all": enough >= 128,
    }


@proves("15.p8")
def which_control_hides_as_much(texts):
    looks, ranked = maps_of(CAT)[..., LAST, NOUN].flatten(), of("heads")
    assert looks.quantile(0.9) < 0.13 and looks.median() < 0.02, "why b"
    best = torch.tensor([9 * block + head for block, head in best_heads()])
    of_best, others = looks[best].mean(), looks[[i for i in range(270) if i not in best]]
    lost = dict(zip(ranked["k"], torch.tensor(ranked["best"]).mean(1).tolist(), strict=True))
    return {
        "next sixteen": lost[32] - lost[16] < 0.05,  # whether they carry nothing
        "at random": others.mean() > of_best / 2,
        "attend to it most": others.topk(16).values.mean() > of_best,
        "another word": False,  # it asks about the word, and not about the heads
    }


# ---------------------------------------------------------------- hints


@proves("15.fill")
def shared_heads(texts):
    cut, *order = texts["2"].gives()
    pairs, repeated, copied = texts["3"].says(..., ..., 0, 1, ..., 0)
    assert order == [6, *run(pairs, weight=torch.arange(6), head_size=6).tolist()]
    heads = run(repeated, heads=torch.arange(3), n=3).tolist()
    texts["1"].says(0, 9, 3, *[h for h in range(9) if heads[h] == 0], 0)
    assert heads == 3 * [0] + 3 * [1] + 3 * [2] and copied.count("query") == 2

    def lines(name):
        heads = repeated.replace("heads", cut.replace("weight", name))
        return copied.replace("query", name).replace(f"({name})", f"({heads}.flatten(0, 1))")

    def paired(name):
        return f"{name} = {pairs.replace('weight', name)}"

    return written(
        "attention, query, key, value, proj",
        "head_size, n = attention.head_size, len(query) // len(key)",
        paired("query"),
        paired("key"),
        copied,
        lines("key"),
        lines("value"),
        copied.replace("query", "proj"),
        "attention.proj.bias.zero_()",
    )


@proves("15.1")
def one_head_of_the_other_run(texts):
    texts["1"].says(4, C=12, n_head=3)
    texts["2"].says(4, 8, LAST, head=1, d=4)
    own, theirs = texts["3"].gives()
    d = "d = z.shape[-1] // n_head"
    return written("z, other, head, n_head", d, "z = z.clone()", f"{own} = {theirs}", "z")


@proves("15.4")
def scaled_by_what_is_left(texts):
    maps = torch.rand(2, 3, 3)
    assert torch.equal(run(texts["1"].gives()[-1], maps=maps), maps[:, -1])
    texts["2"].says(0, 1)
    target, zero, row, left = texts["3"].gives()
    lines = f"{target} = {zero}", f"{row} /= {left}"
    return written("maps, target", "maps = maps.clone()", *lines, "maps")


@proves("15.5")
def all_weight_on_one_token(texts):
    assert texts["1"].gives()[0] == "maps[..., -1, :]"
    texts["2"].says(0, 1)
    row, zero, target, one = texts["3"].gives()
    lines = f"{row} = {zero}", f"{target} = {one}"
    return written("maps, target=1", "maps = maps.clone()", *lines, "maps")


@proves("15.6")
def as_many_others(texts):
    look, *_ = texts["2"].says(..., (2, 3), ..., n_block=2, n_head=3)
    first, pair, n_head = texts["3"].gives()
    marked = "for place in heads: look[place] = -1"
    pairs = f"[{pair.replace('n_head', n_head)} for i in {first}.tolist()]"
    return written("maps, target, heads", f"look = {look}.clone()", marked, pairs)
