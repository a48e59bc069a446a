import pytest

from helpers.pictures import guessed_next


def test_the_guess_follows_the_larger_channel():
    shown = str(
        guessed_next([[0.6, 0.4], [0.1, 0.2], [1 / 6, 0.5 / 3]], ["a", "b", "c"], title="At “it”")
    )
    assert [line.split("  ")[0] for line in shown.splitlines()[-3:]] == [
        "a → slept",
        "b → cooled",
        "c → ???",
    ]
    assert "colours: 0 to 1" in shown and "animal  food" in shown


@pytest.mark.parametrize(
    ("outputs", "texts", "message"),
    [
        ([[1.0, 0.0, 0.0]], ["a"], r"\(n_text, 2\), got \(1, 3\)"),
        ([[1.0, 0.0]], ["a", "b"], "got 2"),
    ],
)
def test_guesses_need_two_channels_and_a_text_for_each_row(outputs, texts, message):
    with pytest.raises(ValueError, match=message):
        guessed_next(outputs, texts)
