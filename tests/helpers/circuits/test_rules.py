"""Rules, the matrices that follow them, and the words that prove that one head cannot."""

from dataclasses import replace

import pytest
import torch

from helpers.circuits import RULES, Rule, certificate, one_hot_tokens, score_from_blocks
from helpers.circuits import rules as of_rules
from helpers.circuits.rules import LETTERS, LONGEST

LL, LP = ("letter", "letter"), ("letter", "position")
PL, PP = ("position", "letter"), ("position", "position")


def column(size, at, value=1.0):
    """A square block with one column of equal scores."""
    block = torch.zeros(size, size)
    block[:, at] = value
    return block


def pairs(letters, queries, keys, value):
    """The block of letters in which these queries find these keys."""
    block = torch.zeros(len(letters), len(letters))
    for query, key in [(q, k) for q in queries for k in keys]:
        block[letters.index(query), letters.index(key)] = value
    return block


def largest_letter(letters):
    order = torch.tensor([float(sorted(letters).index(letter)) for letter in letters])
    return order.expand(len(letters), -1)


def matching(letters, T):
    kinds = [pairs(letters, c, o, T) for o, c in zip("([{", ")]}", strict=True)]
    later = torch.arange(float(T)).expand(len(letters), -1)
    return {LL: sum(kinds), LP: later}


def written(name, letters, T):
    """The matrix M of a rule."""
    same, itself = torch.eye(len(letters)), torch.eye(T)
    if name == "one back":
        return of_rules.one_back_matrix(letters, T)
    if name == "last separator":
        return of_rules.last_separator_matrix(letters, T)
    blocks = {
        "everyone": lambda: {},
        "first": lambda: {PP: column(T, 0)},
        "same letter": lambda: {LL: same},
        "earlier same letter": lambda: {LL: 2 * same, PP: -itself},
        "consonants": lambda: {LL: pairs(letters, "ae", "bcdf", 2), PP: itself},
        "largest letter": lambda: {LL: largest_letter(letters)},
        "start and a": lambda: {LL: pairs(letters, letters, "^a", 1)},
        "matching bracket": lambda: matching(letters, T),
        "my word": lambda: {("copied position", "copied position"): itself},
        "induction": lambda: {
            ("letter", "copied letter"): 2 * same,
            PP: itself - column(T, 0, 2),
        },
    }[name]()
    return score_from_blocks(letters, T, blocks, layer=1 if RULES[name].first else 0)


@pytest.mark.parametrize("name", RULES)
def test_each_rule_can_be_written_and_is_exact_on_all_words(name):
    rule = RULES[name]
    for letters, T in [(rule.letters, LONGEST), (rule.letters[::-1], 9)]:
        M = written(name, letters, T)
        assert rule.first_failure(M, letters, T) == ""
        assert rule.share_right(M, letters, T) == 1


@pytest.mark.parametrize(
    ("name", "word", "attended"),
    [
        ("everyone", "ab", [{0}, {0, 1}]),
        ("first", "ab-", [{0}, {0}, {0}]),
        ("one back", "abc", [{0}, {0}, {1}]),
        ("same letter", "abab", [{0}, {1}, {0, 2}, {1, 3}]),
        ("earlier same letter", "ababa", [{0}, {1}, {0}, {1}, {0, 2}]),
        ("consonants", "acbea-e", [{0}, {1}, {2}, {1, 2}, {1, 2}, {5}, {1, 2}]),
        ("largest letter", "-bacc", [{0}, {1}, {1}, {3}, {3, 4}]),
        ("last separator", "a-b--c", [{0}, {1}, {1}, {3}, {4}, {4}]),
        ("start and a", "^aba", [{0}, {0, 1}, {0, 1}, {0, 1, 3}]),
        ("matching bracket", "(x[])x", [{0}, {1}, {2}, {2}, {0}, {5}]),
        ("my word", "-ab-c", [{0}, {0, 1}, {0, 1, 2}, {3}, {3, 4}]),
        ("induction", "abcab", [{0}, {1}, {2}, {1}, {2}]),
    ],
)
def test_what_the_rules_say(name, word, attended):
    assert RULES[name].attended(word) == attended
    for row, positions in zip(RULES[name].weights(word), attended, strict=True):
        assert set(row.nonzero().flatten().tolist()) == positions
        assert row.sum() == pytest.approx(1)


@pytest.mark.parametrize("name", RULES)
def test_the_words_are_many_and_of_the_letters_of_the_rule(name):
    rule = RULES[name]
    wanted = of_rules.examples(rule, rule.letters, LONGEST)[2]
    assert wanted.shape == (1000, LONGEST, LONGEST)
    few = ("everyone", "first", "one back")  # whose weights depend on the length alone
    assert len(wanted.flatten(1).unique(dim=0)) > (11 if name in few else 40)
    lengths = (wanted.sum(dim=-1) > 0.5).sum(dim=-1)
    assert lengths.min() == 1 and lengths.max() == LONGEST


def failure(name, blocks):
    rule = RULES[name]
    return rule.first_failure(score_from_blocks(rule.letters, LONGEST, blocks))


def test_what_is_said_of_a_matrix_that_breaks_a_rule():
    assert failure("one back", {PP: torch.diag(torch.ones(LONGEST - 1), 1)}) == (
        "In “caccdbbcdbeb”, position 1 (“a”) should attend to position 0 (“c”).\nIt has 0.50 on "
        "position 1 (“a”), as much as on position 0 (“c”): their scores are equal."
    )
    assert failure("one back", {PP: torch.eye(LONGEST)}).endswith(
        "It has 1.00 on position 1 (“a”) and 0.00 on position 0 (“c”): the wrong score is the "
        "larger one."
    )
    assert failure("one back", {PP: torch.diag(torch.full((LONGEST - 1,), 0.1), -1)}).endswith(
        "It has 0.12 on position 1 (“a”) beside 0.88 on position 0 (“c”): the right score is "
        "larger, but not by enough."
    )
    large = {LL: torch.full((7, 7), 1e9), PP: torch.diag(torch.ones(LONGEST - 1), -1)}
    assert failure("one back", large).endswith(
        "It has 0.50 on position 1 (“a”), as much as on position 0 (“c”): their scores are equal. "
        "In float64 it would be right: float32 has about 7 digits, too few beside a score of 1e+09."
    )
    assert failure("everyone", {PP: torch.eye(LONGEST)}) == (
        "In “caccdbbcdbeb”, position 1 (“a”) should attend to positions 0 (“c”) and 1 (“a”), "
        "equally.\nIt has 0.00 on position 0 (“c”) and 1.00 on position 1 (“a”): equal weights "
        "need equal scores."
    )
    assert "position 1 (“a”) should attend to itself" in failure("same letter", {})


def test_a_fault_that_only_few_words_show_is_found():
    def word(source, letters, t):
        return ("b" if source.random() < 0.005 else "a") * t

    rule = replace(RULES["everyone"], letters="ab", word=word)
    to_the_first = torch.zeros(2, LONGEST)
    to_the_first[1, 0] = 1  # of each “b”
    M = score_from_blocks("ab", LONGEST, {LP: to_the_first})
    assert rule.first_failure(M).startswith("In “bbb")
    assert rule.share_right(M) > 0.99


def near_misses():
    """Wrong blocks for the rules of the core: (rule, what is wrong, blocks)."""
    T, V = LONGEST, len(LETTERS)
    same, itself = torch.eye(V), torch.eye(T)
    separator, later = torch.zeros(T, V), torch.arange(float(T)).expand(V, -1)
    separator[:, LETTERS.index("-")] = 1
    yield "one back", "transposed", {PP: torch.diag(torch.ones(T - 1), 1)}
    yield "earlier same letter", "itself wins", {LL: same}
    yield "earlier same letter", "later more", {LL: 2 * same, LP: later / 4, PP: -itself}
    yield "last separator", "no ramp", {PL: T * separator, PP: itself}
    yield "last separator", "ramp too strong", {PL: 2 * separator, LP: later}
    yield "last separator", "ramp reversed", {PL: T * separator, LP: -later, PP: T / 2 * itself}
    same, before = 2 * torch.eye(6), itself - column(T, 0, 2)  # six letters, two layers
    yield "induction", "0 precedes itself", {("letter", "copied letter"): same, PP: itself}
    yield "induction", "own letter for the previous one", {LL: same, PP: before}
    yield "induction", "transposed", {("copied letter", "letter"): same, PP: before}


@pytest.mark.parametrize(("name", "what", "blocks"), list(near_misses()))
def test_near_misses_break_their_rule_but_not_in_each_row(name, what, blocks):
    rule = RULES[name]
    M = score_from_blocks(rule.letters, LONGEST, blocks, layer=1 if rule.first else 0)
    assert "should attend to" in rule.first_failure(M)
    assert 0 < rule.share_right(M) < 1


# ---------------------------------------------------------------- certificates


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("matching bracket", "(())", "((x)"),
        ("my word", "aaa", "a-a"),
        ("induction", "abcabc", "cbdaec"),
        ("induction", "abdca", "dbaca"),  # without any “else”
    ],
)
def test_a_certificate_proves_equal_scores_and_opposite_answers(name, first, second):
    found = certificate(name, first, second)
    rule, t, i, j = RULES[name], found.t, found.i, found.j
    assert rule.weights(found.first)[t, i] > rule.weights(found.first)[t, j]
    assert rule.weights(found.second)[t, i] <= rule.weights(found.second)[t, j] > 0
    letters = "".join(sorted({*first, *second}))
    for seed in range(5):  # whatever the matrix is
        size = len(letters) + 6
        M = torch.randn(size, size, generator=torch.Generator().manual_seed(seed))
        scores = []
        for word in (found.first, found.second):
            x = one_hot_tokens(word, letters, 6)
            scores.append((x @ M @ x.mT)[t, [i, j]])
        assert torch.equal(*scores)


def test_a_certificate_in_words():
    assert " ".join(str(certificate("matching bracket", "(())", "((x)")).split()) == (
        "In “(())” and “((x)”, position 3 (“)”) is the same query, and positions 0 (“(”) and 1 "
        "(“(”) are the same keys: the same two scores. In “(())” the rule gives position 0 more "
        "weight than 1, in “((x)” it does not."
    )


@pytest.mark.parametrize("name", [name for name, rule in RULES.items() if not rule.first])
def test_rules_that_one_head_follows_have_no_certificate(name):
    rule = RULES[name]
    words = ["ab-ab-a", "aa-bb-b", "a-a-aab", "bbbbbbb", "-a-b-aa"]
    if name == "start and a":
        words = ["^abab", "^aabb", "^bbbb", "^aaaa"]
    if name == "matching bracket":
        words = ["([]x)x", "([][])", "()([])", "(xx)()"]
    assert all(certificate(rule, a, b) is None for a in words for b in words)


def test_two_weights_of_zero_prove_nothing():
    none_or_first = Rule("", lambda word: [{0}, {0 if word[-1] == "a" else 2}, {2}][: len(word)])
    assert certificate(none_or_first, "bba", "bbb") is None


def test_certificates_that_cannot_be_asked_for():
    with pytest.raises(ValueError, match=r"There is no rule 'brackets'; there are everyone, first"):
        certificate("brackets", "()", "()")
    with pytest.raises(ValueError, match="at least one letter"):
        certificate("my word", "", "a")
