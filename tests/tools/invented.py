"""A class of thirty students who are invented, and their progress files as `keep` writes them."""

import random
from datetime import datetime, timedelta

from lesson import progress_file
from lesson.exercises import EXERCISES, PREDICTIONS
from lesson.progress_file import Entry

# With what may stand in a name: a comma, quotes, the beginning of a formula, other letters.
NAMES = [
    "=SUM(A1)", "anna", "Bela", "Carl, Jr.", "dora", "Emil", 'Ann "Nan" Lee', "Fatma Çelik", "Gül",
    "hugo", "Inga", "Jörg Müller", "李 娜", "kim", "Łukasz Żak", "Mia", "Nguyễn Thị Hoa", "Omar",
    "paul", "Quentin", "Rosa", "Søren", "Tomás", "uma", "Vera", "wei", "Xenia", "Yusuf", "O'Neil",
    "Zoë",
]  # fmt: skip
MONDAY = datetime(2026, 3, 2, 9)  # notebook 00; a week later 01, and so on


def write_class(folder, last="06"):
    """Write a file for each student, who are at notebook ``last`` or some before it."""
    chance = random.Random(7)
    for name in NAMES:
        skill, end = chance.uniform(0.35, 0.9), int(last) - chance.choice([0, 0, 0, 0, 1, 1, 2, 4])
        now = {nb: MONDAY + timedelta(weeks=nb) for nb in range(int(last) + 1)}
        (folder / f"{name}.jsonl").touch()
        for id in sorted([*PREDICTIONS, *EXERCISES], key=lambda id: id[:2]):
            nb = int(id[:2])
            if nb > end:
                break
            for kind, status, more in _answers(id, skill, chance):
                now[nb] += timedelta(minutes=chance.randint(1, 6))
                time = now[nb].strftime("%Y-%m-%dT%H:%M:%SZ")
                entry = Entry(time, id[:2], id, kind, status, **more)
                progress_file._append(folder / f"{name}.jsonl", entry)


def _answers(id, skill, chance):
    """What a student answers, one after the other."""
    if id in PREDICTIONS:
        right = PREDICTIONS[id].answer
        others = [letter for letter in PREDICTIONS[id].choices if letter != right]
        letter = right if chance.random() < skill else chance.choice([others[0], *others])
        yield "predict", "right" if letter == right else "wrong", {"answer": letter}
        if letter != right and chance.random() < 0.6:
            yield "predict", "right", {"answer": right}
        return
    if EXERCISES[id].optional and chance.random() < 0.7:
        return
    mistakes = [mistake.name for mistake in EXERCISES[id].mistakes]
    for _ in range(chance.randint(0, 5)):
        if chance.random() < skill:
            yield "check", "passed", {}
            return
        name = chance.choice([*mistakes[:2], *mistakes[:2], *mistakes, ""]) if mistakes else ""
        yield "check", "failed", {"mistake": name}
