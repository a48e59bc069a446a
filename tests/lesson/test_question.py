"""A prediction on the screen: in text, with buttons, and answered in code."""

from helpers.lesson.question import Question, as_html
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
