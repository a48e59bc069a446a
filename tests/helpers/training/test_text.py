"""Texts: what is read and refused, their split, their windows, and what counting guesses."""

import math
import pydoc_data.topics
from collections import Counter

import pytest
import torch

from helpers.gpt import decode, encode
from helpers.training import (
    Corpus,
    counting_losses,
    drop_repeats,
    python_help,
    read_text,
    share_seen,
)
from tests.helpers.training import small


def test_the_help_of_python_is_a_short_book_and_repeats_itself():
    text = python_help()
    assert all(topic in text for topic in pydoc_data.topics.topics.values())
    assert len(text) > 300_000 and len(drop_repeats(text)) < 0.9 * len(text)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("Grüße, 日本\n".encode(), "Grüße, 日本\n"),
        (b"\xef\xbb\xbfa\r\nb\r\n", "a\nb\n"),  # as editors on Windows save it
        (b"", ""),
    ],
)
def test_a_text_in_utf_8_is_read(tmp_path, data, text):
    path = tmp_path / "text.txt"
    path.write_bytes(data)
    assert read_text(path) == read_text(str(path)) == text


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("a text".encode("utf-16"), "byte 0 is 0xff"),
        ("a text".encode("utf-16-le"), "the byte 0, as programs, pictures and texts in UTF-16 do"),
        ("a größe".encode("latin-1"), "byte 4 is 0xf6"),
        (b"\x89PNG\r\n\x1a\n\0\0", "byte 0 is 0x89"),
        (b"\x7fELF\2\1\1\0", "the byte 0"),
    ],
)
def test_what_is_no_text_in_utf_8_is_refused(tmp_path, data, said):
    path = tmp_path / "text.txt"
    path.write_bytes(data)
    with pytest.raises(ValueError, match="Save it as plain text with the encoding UTF-8") as error:
        read_text(path)
    assert str(path) in str(error.value) and said in str(error.value)


def test_a_file_that_is_not_there_is_looked_for_in_words(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError) as error:
        read_text("my text.txt")
    assert str(error.value).startswith(f"There is no file my text.txt in the folder {tmp_path}")


def test_each_paragraph_stands_once_where_it_stood_first():
    text = "a\nb\n\nc\n\n\na\nb\n\n \n\nd\n\nc\n\nc\n"
    assert drop_repeats(text) == "a\nb\n\nc\n\nd"
    assert drop_repeats(drop_repeats(text)) == drop_repeats(text)
    assert drop_repeats("") == ""


@pytest.mark.parametrize("n", [2000, 2399, 2400, 39_999, 40_000, 100_001])
def test_every_tenth_block_is_for_validation(n):
    text = small.text(n)
    corpus, size = Corpus(text), min(2000, n // 20)
    blocks = [text[i : i + size] for i in range(0, n, size)]
    assert corpus.validation == "".join(blocks[9::10])
    assert corpus.training == "".join(b for i, b in enumerate(blocks) if (i + 1) % 10)
    assert 0.05 <= len(corpus.validation) / n <= 0.1
    assert Counter(corpus.training) + Counter(corpus.validation) == Counter(text)
    assert list(corpus.letters) == sorted(set(text))
    assert decode(corpus.training_ids, corpus.letters) == corpus.training


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("", ValueError, "at least 2,000 letters, got 0"),
        ("abc" * 500, ValueError, "at least 2,000 letters, got 1,500"),
        ("a" * 3000, ValueError, "at least two different letters, got only 'a'"),
        (b"abc" * 1000, TypeError, r"must be a str, got bytes. For a file: read_text\(path\)"),
        (None, TypeError, "must be a str, got NoneType"),
    ],
)
def test_a_text_to_learn_nothing_from_is_refused(text, error, said):
    with pytest.raises(error, match=said):
        Corpus(text)


@pytest.mark.parametrize("T", [1, 7, 8, 239])
def test_windows_ask_for_each_letter_of_the_validation_text_once(T):
    text, windows = small.CORPUS.validation, small.CORPUS.windows(T)
    assert windows.shape == ((len(text) - 1) // T, T + 1)
    asked = decode(windows[:, 1:].flatten(), small.CORPUS.letters)
    read = decode(windows[:, :-1].flatten(), small.CORPUS.letters)
    assert asked == text[1 : len(asked) + 1] and read == text[: len(asked)]
    assert len(text) - 1 - len(asked) < T


def test_a_batch_is_of_windows_from_anywhere_in_the_training_text():
    corpus, generator = Corpus(small.text(2000)), torch.Generator().manual_seed(0)
    T = len(corpus.training) - 2  # so that a window has two places to begin
    windows = corpus.batch(50, T, generator)
    found = {decode(window, corpus.letters) for window in windows}
    assert windows.shape == (50, T + 1)
    assert found == {corpus.training[:-1], corpus.training[1:]}
    again = corpus.batch(50, T, torch.Generator().manual_seed(0))
    assert torch.equal(windows, again)


def test_windows_that_do_not_fit_are_refused():
    corpus, generator = small.CORPUS, torch.Generator()
    assert corpus.windows(239).shape == (1, 240) and len(corpus.validation) == 240
    with pytest.raises(ValueError, match="T \\+ 1 = 241 letters, but the validation text has"):
        corpus.windows(240)
    assert corpus.batch(1, 2159, generator).shape == (1, 2160) and len(corpus.training) == 2160
    with pytest.raises(ValueError, match="2,161 letters, but the training text has only 2,160"):
        corpus.batch(1, 2160, generator)


def test_letters_and_ids_are_turned_into_each_other():
    assert encode("cab", "abc").tolist() == [2, 0, 1] and encode("cab", "abc").dtype == torch.int64
    assert decode(torch.tensor([2, 0, 1]), "abc") == "cab"
    assert encode("", "abc").shape == (0,) and decode(torch.tensor([]), "abc") == ""
    with pytest.raises(ValueError, match=r"never seen 'X', 'é'.*It knows these 3: ab$"):
        encode("aéXéb", "\nab")
    with pytest.raises(ValueError, match=r"got the shape \(1, 2\). .* use ids\[0\]"):
        decode(torch.tensor([[0, 1]]), "abc")


def test_the_share_of_stretches_that_training_has_too():
    text, known = small.CORPUS.validation, small.CORPUS.training
    for n in (1, 5, 12, len(text)):
        stretches = [text[i : i + n] for i in range(len(text) - n + 1)]
        expected = sum(stretch in known for stretch in stretches) / len(stretches)
        assert share_seen(small.CORPUS, n) == expected
    assert share_seen(small.CORPUS, 1) == 1 and share_seen(small.CORPUS, len(text)) == 0
    for n in (0, len(text) + 1):
        with pytest.raises(ValueError, match="n must be a whole number from 1 to 240"):
            share_seen(small.CORPUS, n)


def probability(letter, context, k, corpus):
    """Of a letter after a context, by the definition: its last k letters, mixed with fewer."""
    if k < 0:
        return 1 / len(corpus.letters)
    lower, text = probability(letter, context, k - 1, corpus), corpus.training
    wanted = context[len(context) - k :]
    followed = [text[i] for i in range(k, len(text)) if text[i - k : i] == wanted]
    if not followed:
        return lower
    n, kinds = len(followed), len(set(followed))
    return n / (n + kinds) * followed.count(letter) / n + kinds / (n + kinds) * lower


def test_counting_loses_what_its_definition_says():
    corpus = Corpus(small.text(2000))
    # Nothing of this has ever followed an "x".
    corpus.validation = corpus.validation[:40] + "x" + corpus.validation[:9]
    corpus.letters += "x"
    text = corpus.validation
    expected = [
        -sum(math.log(probability(text[i], text[:i], min(k, i), corpus)) for i in range(50)) / 50
        for k in range(4)
    ]
    assert counting_losses(corpus, 3) == pytest.approx(expected, rel=1e-12)
    for k in (0, 2):
        sums = sum(probability(letter, text[:30], k, corpus) for letter in corpus.letters)
        assert sums == pytest.approx(1)
    assert counting_losses(corpus, 0) == counting_losses(corpus, 3)[:1]
    with pytest.raises(ValueError, match="most must be a whole number of at least 0, got -1"):
        counting_losses(corpus, -1)
