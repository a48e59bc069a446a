import itertools

import numpy as np
import pytest
import torch

from attention_base.numbers import narrow
from explorers import explore_painter
from helpers.circuits import RULES
from helpers.circuits.rules import LETTERS
from helpers.pictures.colours import fills, paint
from helpers.pictures.table import Cell, Table
from tests.explorers.reading import Quilt, controls, move, now

NONE, T = "no rule", 12
AIMS = ("everyone", "first", "one back", "same letter", "earlier same letter", "consonants")
AIMS = NONE, *AIMS, "largest letter", "last separator"
BLOCKS = ("letter × letter", "letter × position", "position × letter", "position × position")
ALPHABET = "-abcdef"  # from the smallest to the largest
STROKES = [  # what a query scores with a key: letters as texts, positions as whole numbers
    {
        "nothing": lambda q, k: 0,
        "same letter": lambda q, k: q == k,
        "column “-”": lambda q, k: k == "-",
        "larger letter is more": lambda q, k: ALPHABET.index(k) / 2,
        "vowel to consonants": lambda q, k: q in "ae" and k in "bcdf",
    },
    {
        "nothing": lambda q, k: 0,
        "column 0": lambda q, k: k == 0,
        "later is more": lambda q, k: k / 2,
    },
    {"nothing": lambda q, k: 0, "column “-”": lambda q, k: k == "-"},
    {
        "nothing": lambda q, k: 0,
        "itself": lambda q, k: q == k,
        "one back": lambda q, k: k == q - 1,
        "one ahead": lambda q, k: k == q + 1,
        "column 0": lambda q, k: k == 0,
        "later is more": lambda q, k: k / 2,
    },
]


def score(query, key, painted):
    """The score of two tokens, or of two parts of them: each one or two of letter and position."""
    pairs = itertools.product(query, key)
    blocks = [2 * isinstance(q, int) + isinstance(k, int) for q, k in pairs]
    parts = zip(blocks, itertools.product(query, key), strict=True)
    return sum(painted[b][1] * STROKES[b][painted[b][0]](q, k) for b, (q, k) in parts)


def coloured(values):
    most = max(1, *(abs(v) for v in values.flat))
    return fills(paint(np.sign(values) * (abs(values) / most) ** 0.5, -1, 1, 0))


def model(word, aim, rule, written, sharpness, *strokes):
    painted = list(zip(strokes[::2], strokes[1::2], strict=True))
    parts = [(letter,) for letter in LETTERS] + [(t,) for t in range(T)]
    M = np.array([[float(score(q, k, painted)) for k in parts] for q in parts])
    patches = {(i, j): (coloured(M)[i][j].code, f"{M[i, j]:g}") for i, j in np.argwhere(M).tolist()}
    of_parts = [f"{who} {part}" for part in ("letter", "position") for who in ("key’s", "query’s")]
    names = [str(part) for (part,) in parts]
    label = "M: what each query scores with each key"
    quilt = Quilt(label, of_parts, names, names, patches)

    tokens = [(letter, t) for t, letter in enumerate(written)]
    scores = np.array([[float(score(q, k, painted)) for k in tokens] for q in tokens])
    weights = np.zeros(scores.shape)
    for t, row in enumerate(scores):
        powers = np.exp(sharpness * (row[: t + 1] - row[: t + 1].max()))
        weights[t, : t + 1] = powers / powers.sum()
    whole = (scores == scores.round()).all()
    texts = [["0" if v == 0 else f"{v:.{0 if whole else 1}f}" for v in row] for row in scores]
    asked = [()] * len(tokens) if rule == NONE else RULES[rule].attended(written)
    names = [f"{t} {letter}" for letter, t in tokens]
    tables = [
        Table(
            names,
            [
                (name, [Cell("–", "masked", None, "masked") if j > t else
                        Cell(words[t][j], "framed" if j in framed[t] else "", colours[t][j])
                        for j in range(len(tokens))])
                for t, name in enumerate(names)
            ],
            caption=caption, corner="query (who reads)", over="key (who is read)", size="small",
        )
        for words, colours, caption, framed in (
            (texts, coloured(scores), f"scores of “{written}”", [()] * len(tokens)),
            ([[narrow(w) for w in row] for row in weights.tolist()],
             fills(paint(weights, 0, 1, None)), f"weights = softmax({sharpness} × scores)", asked),
        )
    ]  # fmt: skip
    held = [
        f"{times} × {stroke} ({b})"
        for b, (stroke, times) in zip(BLOCKS, painted, strict=True)
        if times and stroke != "nothing"
    ]
    told = [f"M holds, by part of the query × part of the key: {', '.join(held)}."]
    if not held:
        *others, last = [str(times) for _, times in painted]
        told = [
            "Nothing is painted, so M is 0, and each token attends to all that it sees, equally. "
            f"The strengths are {', '.join(others)} and {last}."
        ]
    if rule != NONE:
        told.append(f"The rule “{rule}” (framed in the weights) {verdict(rule, M, sharpness)}")
    said = [
        f"{t.caption}. Rows: {t.corner}; columns: {t.over}. {' '.join(t.text().split())}"
        for t in tables
    ]
    return [" ".join([*told, *said]), quilt, *tables, *told]


def verdict(rule, M, sharpness):
    failure = RULES[rule].first_failure(torch.tensor(M * sharpness / 20).float())
    failure = failure.replace("\n", " ")
    return f"fails. {failure}" if failure else "holds on 1,000 random words."


CONTROLS = {
    "rule": (NONE, AIMS),
    "word": ("cab-ad", ()),
    "sharpness": (20, (1, 30, 1)),
}
for block, strokes in zip(BLOCKS, STROKES, strict=True):
    CONTROLS |= {block: ("nothing", tuple(strokes)), f"strength of {block}": (1, (-10, 10, 1))}
FIRST = tuple(first for first, _ in CONTROLS.values())
# For each rule, what writes it: (stroke, strength) of the four blocks.
NO = ("nothing", 1)
WRITTEN = {
    "everyone": (NO, NO, NO, NO),
    "first": (NO, NO, NO, ("column 0", 1)),
    "one back": (NO, NO, NO, ("one back", 1)),
    "same letter": (("same letter", 1), NO, NO, NO),
    "earlier same letter": (("same letter", 2), NO, NO, ("itself", -1)),
    "consonants": (("vowel to consonants", 2), NO, NO, ("itself", 1)),
    "largest letter": (("larger letter is more", 1), NO, NO, NO),
    "last separator": (NO, ("later is more", 1), ("column “-”", 10), ("itself", 4)),
}


def with_blocks(rule, word, sharpness, blocks):
    return (rule, word, sharpness, *itertools.chain(*blocks))


def one_changed(i, value):
    return (*FIRST[:i], value, *FIRST[i + 1 :])


CASES = [
    (
        {"word": "cab-ad", "rule": None},
        [
            *(one_changed(i, value)
              for i, (_, reach) in enumerate(CONTROLS.values())
              for value in (reach[:2] if isinstance(FIRST[i], int) else reach)),
            *(one_changed(1, word) for word in ("-", "fed", "cab-ad-fedcb")),
            *(with_blocks(rule, "ab-ca-fb", sharpness, blocks)
              for rule, blocks in WRITTEN.items() for sharpness in (2, 20)),
            ("one back", "aab", 5, "same letter", -3, "column 0", 10, "column “-”", -10,
             "one ahead", 0),
        ],
    ),
    ({"word": "f", "rule": "one back"}, [("one back", "f", *FIRST[2:])]),
]  # fmt: skip
REFUSED = [
    ({"word": "", "rule": None}, "1 to T = 12 letters; '' has 0"),
    ({"word": "abcdefabcdefa", "rule": None}, "1 to T = 12 letters; .* has 13"),
    ({"word": "abx", "rule": None}, "position 2 of 'abx' has 'x'"),
    ({"word": "ab", "rule": "two back"}, "rule must be one of everyone, .*; got 'two back'"),
    ({"word": "ab", "rule": "induction"}, "rule must be one of"),  # two layers
    ({"word": "ab", "rule": "start and a"}, "rule must be one of"),  # other letters
]


@pytest.mark.parametrize("rule", WRITTEN)
def test_every_rule_of_one_head_can_be_written_and_fails_with_nothing(rule):
    explorer = explore_painter(rule=rule)
    assert ("holds on 1,000" in now(explorer)) == (rule == "everyone")
    settings = with_blocks(rule, "cab-ad", 20, WRITTEN[rule])
    move(explorer, dict(zip(CONTROLS, settings, strict=True)))
    assert "holds on 1,000 random words" in now(explorer)


def test_the_transposed_stroke_fails_and_a_low_sharpness_too():
    explorer = explore_painter(rule="one back")
    controls(explorer)["position × position"].value = "one ahead"
    assert "fails. In “" in now(explorer)
    move(explorer, {"position × position": "one back", "sharpness": 1})
    assert "the right score is larger, but not by enough" in now(explorer)


@pytest.mark.parametrize(("word", "told"), [("", "'' has 0"), ("cat", "position 2 of 'cat' has")])
def test_a_word_that_cannot_be_read_is_told_in_words_and_goes_away(word, told):
    explorer = explore_painter()
    before = explorer.view.value
    controls(explorer)["word"].value = word
    assert 'role="alert"' in explorer.view.value and "cannot be drawn" in now(explorer)
    assert told in now(explorer)
    controls(explorer)["word"].value = "cab-ad"
    assert explorer.view.value == before


def test_a_step_stays_short_where_every_cell_is_painted():
    full = [("larger letter is more", 3), ("later is more", 1), ("column “-”", 10)]
    settings = with_blocks("first", "cab-ad-fedcb", 20, [*full, ("later is more", -4)])
    explorer = explore_painter()
    move(explorer, dict(zip(CONTROLS, settings, strict=True)))
    assert len(explorer.view.value) < 40_000
