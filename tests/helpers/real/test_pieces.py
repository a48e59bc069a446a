"""Byte-pair encoding with a vocabulary of a few pieces."""

import pytest

from helpers.real.pieces import Pieces, _words

BYTES = [*map(chr, range(33, 127)), *map(chr, range(161, 173)), *map(chr, range(174, 256))]
BYTES += [chr(256 + n) for n in range(68)]
PIECES = Pieces([*BYTES, "th", "the", "Ġthe", "Ġt", "he"], ["t h", "th e", "Ġ the", "Ġ t", "h e"])


def test_the_earliest_pair_is_joined_first():
    assert [PIECES.names[i] for i in PIECES.encode("the the")[0]] == ["the", "Ġthe"]
    assert [PIECES.names[i] for i in PIECES.encode("he to")[0]] == ["he", "Ġt", "o"]


@pytest.mark.parametrize(
    "text",
    ["the cat", "día, 12½ €\n\n  x_1", "猫は暖かい", "a\tb \n c  ", "'s they're", "\U0001f600"],
)
def test_decode_gives_the_text_back(text):
    assert PIECES.decode(PIECES.encode(text)[0].tolist()) == text
    assert "".join(_words(text)) == text


def test_each_digit_is_a_word_and_a_blank_goes_with_what_follows():
    assert [*_words("in 1984, it's")] == ["in", " ", "1", "9", "8", "4", ",", " it", "'s"]
    assert [*_words("a  b\n")] == ["a", " ", " b", "\n"]


def test_an_empty_text_is_refused():
    with pytest.raises(ValueError, match="The text is empty"):
        PIECES.encode("")


def test_half_a_letter_is_shown_as_such():
    first = PIECES.encode("é")[0, :1].tolist()
    assert PIECES.decode(first) == "�"
