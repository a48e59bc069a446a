"""A prediction on the screen: in text, with buttons, and answered in code."""

from xml.etree import ElementTree

import ipywidgets
import pytest

from lesson import PREDICTIONS
from lesson.question import Question, as_html
from tests.lesson.examples import PREDICTION


def test_a_question_is_complete_in_text():
    text = str(Question(PREDICTION))
    assert text.startswith("Prediction 99.p1\nIs `0.1 + 0.2 == 0.3`? Think")
    assert "\na) yes\nb) no, `0.1` < 1 & not exact\n" in text
    assert text.endswith('Answer with a button, or in code: predict("99.p1", "…")')
    assert max(map(len, text.splitlines())) <= 80
    assert "Right:" not in text and "decimals" not in text, "an explanation given away"


def test_a_wrong_answer_in_code_explains_itself_and_goes_on():
    question = Question(PREDICTION, "a")
    assert "✗ In decimals it is." in str(question) and "Try another answer." in str(question)
    assert list(question._repr_mimebundle_()) == ["text/plain"], "saved with the notebook as text"


def test_buttons_answer_and_explain():
    question = Question(PREDICTION)
    bundle = question._repr_mimebundle_()
    assert bundle["text/plain"] == str(question) == repr(question)
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert [button.description for button in question.buttons.values()] == [
        "a) yes",
        "b) no, 0.1 < 1 & not exact",
    ]
    question.buttons["a"].click()
    assert "✗ In decimals it is." in question.shown_feedback.value
    assert "Try another answer." in question.shown_feedback.value
    question.buttons["b"].click()
    assert "✓ Right: 0.1 has no" in question.shown_feedback.value
    assert "In decimals" not in question.shown_feedback.value
    assert [button.icon for button in question.buttons.values()] == ["", "check"]
    assert "Your answer: b)" in str(question)


def shown(question):
    """What stands on the screen: the question, the buttons, and the feedback as plain text."""
    head, *buttons, feedback = question.box.children
    told = ElementTree.fromstring(f"<div>{feedback.value}</div>")
    assert [part.get("role") for part in told] in ([], ["alert"]), "read aloud when it appears"
    return head.value, buttons, "".join(told.itertext())


@pytest.mark.parametrize("prediction", [PREDICTION, *PREDICTIONS.values()], ids=lambda p: p.id)
def test_a_click_shows_its_explanation_and_only_it(prediction):
    question = Question(prediction)
    head, buttons, feedback = shown(question)
    assert prediction.id in head and feedback == "", "nothing is given away"
    assert len(buttons) == len(prediction.choices)
    wrong = [letter for letter in prediction.choices if letter != prediction.answer]
    for letter in [*wrong, prediction.answer, *wrong]:
        place = list(prediction.choices).index(letter)
        assert buttons[place].description.startswith(f"{letter}) ")
        buttons[place].click()
        right = letter == prediction.answer
        told = prediction.choices[letter].explanation.replace("`", "")
        feedback = shown(question)[2]
        assert feedback == (f"✓ {told}" if right else f"✗ {told} Try another answer.")
        icons = [""] * len(buttons)
        icons[place] = "check" if right else "times"
        assert [button.icon for button in buttons] == icons


def test_the_keyboard_reaches_every_choice_from_first_to_last():
    _, buttons, _ = shown(Question(PREDICTION))
    assert [button.description[0] for button in buttons] == ["a", "b"]
    for button in buttons:
        assert isinstance(button, ipywidgets.Button), "a button of the browser, for Tab and Enter"
        assert not button.disabled and button.tabbable is not False
        assert button.layout.display != "none"


def test_a_question_answered_by_a_button_is_shown_so_again():
    question = Question(PREDICTION)
    question.buttons["b"].click()
    bundle = question._repr_mimebundle_()
    assert "✓ Right: 0.1" in bundle["text/plain"] and len(bundle) == 2


def test_text_is_escaped_and_code_is_marked_in_html():
    question = Question(PREDICTION)
    html = question.box.children[0].value
    assert "<code>0.1 + 0.2 == 0.3</code>" in html
    assert as_html("a < b & `c`").count("&lt;") == 1
