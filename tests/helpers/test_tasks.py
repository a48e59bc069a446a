"""The tasks of notebooks 05 and 06: what the texts hold, and who learns from them."""

import torch

from helpers import tasks
from helpers.attention import attention


def test_each_text_has_one_noun_and_it_and_ends_with_what_the_noun_did():
    before = torch.get_rng_state()
    windows = tasks.noun_windows(300, seed=1)
    assert torch.equal(torch.get_rng_state(), before) and windows.shape == (300, 7)
    nouns = windows[:, :6] < tasks.NOUNS
    assert (nouns.sum(dim=1) == 1).all() and nouns.any(dim=0).tolist() == [True] * 5 + [False]
    assert {tasks.VOCABULARY[number] for number in windows[:, 5]} == {"it"}
    animal, food = tasks.CHANNELS[windows[:, :6][nouns]].T
    assert torch.equal(windows[:, 6], torch.where(animal == 1, 102, 103))
    assert torch.equal(animal, 1 - food) and 100 < animal.sum() < 200


def test_words_pass_on_what_they_have_to_do_with():
    assert len({*tasks.VOCABULARY}) == len(tasks.CHANNELS) == 102
    told = {"cat": [1, 0], "soup": [0, 1], "warm": [1, 1], "hungry": [0, 1], "it": [0, 0]}
    for word, channels in told.items():
        assert tasks.CHANNELS[tasks.word_numbers([word])[0, 0]].tolist() == channels


def test_each_of_the_heads_reads_its_part_and_guesses_at_it():
    ids, heads = tasks.noun_windows(40, seed=0)[:, :6], tasks.NounHeads(16, divisor=4)
    logits, its_own = heads(ids), ids[6:8]  # what head 3 reads
    q, k, v = heads.queries[3].expand(2, 1, 16), heads.keys[3][its_own], tasks.CHANNELS[its_own]
    out, weights = attention(q, k, v)  # which divides by √16
    torch.testing.assert_close(heads.weights(ids)[3], weights[:, 0])
    torch.testing.assert_close(logits[6:8, 5, 102:], 8 * out[:, 0])
    assert logits.shape == (40, 6, 104) and logits[:, 5, :102].abs().sum() == 0
    assert logits[:, :5].abs().sum() == 0


def test_a_head_that_finds_the_noun_guesses_nothing_wrong():
    windows, heads = tasks.noun_windows(200, seed=0), tasks.NounHeads(2, size=0)
    with torch.no_grad():
        heads.queries[..., 0] = 20
        heads.keys[:, : tasks.NOUNS, 0] = 1
        heads.keys[7] *= -1
    wrong = heads.wrong(windows).sum(dim=-1).tolist()
    assert wrong.pop(7) > 50 and wrong == [0] * 19


def test_tokens_say_word_and_place_and_the_target_says_word_0_and_word_3():
    words = tasks.word_numbers(["dogs are chasing cats so"], tasks.SIXTEEN)
    assert words.tolist() == [[0, 1, 2, 3, 4]]
    tokens, target = tasks.words_and_places(words), tasks.first_word_and_word_before(words)
    assert (
        tokens.shape == (1, 5, 32)
        and (tokens[0].nonzero()[:, 1].view(5, 2) % 16).eq(torch.arange(5)[:, None]).all()
    )
    assert target.nonzero()[:, 1].tolist() == [0, 16 + 3]
