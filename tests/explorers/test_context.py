import re

from attention_base.numbers import number
from helpers.pictures.table import Cell, Table
from tests.explorers.reading import near

READ = ["the cat was warm so it slept", "the soup was warm so it cooled"]
STARTS = ["the cat was warm so it", "the soup was warm so it", "my cat is warm so it"]
TWICE = ["a b a b a c", "b a c"]  # after a: b b c c


def model(read, starts, text, n):
    words = text.split()
    last = " ".join(words[len(words) - n :])

    def next_words(phrase):
        return re.findall(rf"(?<!\S)(?=({re.escape(phrase)}) (\S+))", "\n".join(read))

    found = [word for _, word in next_words(last)]
    share = {word: found.count(word) / len(found) for word in found}
    told = f"Of “{text}”, the model sees “{last}”"
    if found:
        told += " and guesses " + ", ".join(
            f"{word} {number(part)}" for word, part in share.items()
        )
    else:
        told += ": it has never read this, so it has no guess"
    looks = ["faint"] * (len(words) - n) + ["marked"] * n
    cells = [Cell(word, look) for word, look in zip(words, looks, strict=True)]
    start = Table([str(t) for t in range(len(words))], [("text", cells)], over="position")
    rows = []
    for word in dict.fromkeys(word for _, word in next_words(words[-1])):
        part = share.get(word, 0)
        bar = Cell(number(part), bar=near(110 * part))
        rows.append((word, [Cell(str(found.count(word)), "plain"), bar]))
    table = Table(["times read", "share of the guesses"], rows, corner="next word")
    return [told, start, table, f"{told}."]


CONTROLS = {"text": (STARTS[0], tuple(STARTS)), "words seen": (1, (1, 6, 1))}
CASES = [
    ({"read": READ, "starts": STARTS}, [(text, n) for n in (1, 4, 5, 6) for text in STARTS]),
    ({"read": TWICE, "starts": ["b a", "c a"]}, [("b a", 1), ("b a", 2), ("c a", 1), ("c a", 2)]),
]
REFUSED = [
    ({"read": READ, "starts": ["a b", "a"]}, r"equally many words, got \[2, 1\]"),
    ({"read": READ, "starts": [""]}, r"got \[0\]"),
    ({"read": READ, "starts": []}, r"got \[\]"),
]
