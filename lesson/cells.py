"""What a learner calls: predict, check, hint, solution and glossary."""

import difflib
from collections.abc import Callable

from attention_base.arguments import typed
from attention_base.numbers import wrap_text
from feedback.calls import NoEnd, alarm
from feedback.grading import Exercise
from feedback.messages import RIGHT_BUT, interrupted, raised
from lesson import mine, progress_file
from lesson.errors import CheckFailed, LessonError, UnknownId, UnknownTerm
from lesson.exercises import EXERCISES, PREDICTIONS, RETIRED, TERMS
from lesson.question import Prediction, Question, quoted

SECONDS = 20  # that an answer may take before it is stopped: it has no end


def check(id: str = "", candidate: Callable | None = None, *, details: bool = False) -> Callable:
    """Check an answer to an exercise, and return the function to go on with.

    Parameters
    ----------
    id
        The exercise, such as "03.1".
    candidate
        The learner's function or class (itself, not its result).
    details
        Tell of a wrong answer also what it was given, and what holds all the same.

    Returns
    -------
    Callable
        The candidate when it passes; the reference when it was not attempted (it raises
        NotImplementedError, or is still the program to fix), so that the cells below run.

    Raises
    ------
    CheckFailed
        When the answer is wrong. The text names the mistake, or what it does, and a place.
    UnknownId
        When there is no such exercise.
    LessonError
        When there is nothing to check, or it was stopped.
    """
    if callable(id) and isinstance(candidate, str):
        name = getattr(id, "__name__", "your_function")
        raise LessonError(f'The id comes first: check("{candidate}", {name}).')
    exercise = _find(id, EXERCISES)
    if candidate is None:
        name = exercise.reference.__name__
        raise LessonError(
            f'check needs your {name}, too: {name} = check("{exercise.id}", {name}). '
            "(If it is None, run the cell again that defines it.)"
        )
    try:
        with alarm(SECONDS):
            verdict = exercise.check(candidate)
    except KeyboardInterrupt as stop:
        seconds = SECONDS if isinstance(stop, NoEnd) else 0
        raise LessonError(wrap_text(interrupted(stop, candidate, seconds))) from None
    except BaseException as error:
        if isinstance(error, Exception):
            raise  # a bug of ours
        told = raised(error, candidate)  # such as GeneratorExit, in one of many calls
        raise LessonError("\n".join(map(wrap_text, told.splitlines()))) from None
    mistake = verdict.mistake or ""
    if note := progress_file.keep(exercise.id, "check", verdict.status, mistake=mistake):
        print(wrap_text(note))
    head = f"{exercise.id} {exercise.title}"
    if verdict.status == "passed":
        kept = mine.keep(exercise.id, candidate) if mine.is_build(exercise.id) else ""
        told = [f"✓ {head}: {verdict.message}", *verdict.notes, *filter(None, [kept])]
        print("\n".join(map(wrap_text, told)))
        return candidate
    if verdict.status == "not attempted":
        print(wrap_text(f"○ {head}: {verdict.message}"))
        if mine.is_build(exercise.id) and (own := mine.passed_before(exercise.id)):
            print("The one in your file stands in, which has passed.")
            return own
        print(f'The reference stands in, so the cells below run. hint("{exercise.id}") helps.')
        return exercise.reference
    told = verdict.told(details)
    if not verdict.mistake and told.startswith(RIGHT_BUT):
        told = told[0].lower() + told[1:]
    else:
        told = f"{verdict.mistake or 'not right yet'}\n{told}"
    known = verdict.mistake or details or not verdict.details
    more = "" if known else " or check(…, details=True)"
    told = f'✗ {exercise.id}: {told}\nMore: hint("{exercise.id}"){more}.'
    raise CheckFailed("\n".join(map(wrap_text, told.splitlines()))) from None


_hints_given: dict[str, int] = {}


def hint(id: str = "") -> None:
    """Print the next hint of an exercise, from vague to nearly there.

    Raises
    ------
    UnknownId
        When there is no such exercise.
    """
    exercise = _find(id, EXERCISES)
    n = len(exercise.hints)
    given = _hints_given.get(exercise.id, 0)
    level = min(given + 1, n)
    print(wrap_text(f"Hint {level} of {n}: {exercise.hints[level - 1]}"))
    if given >= n:
        print(f'That was the last hint. solution("{exercise.id}") shows one solution.')
    _hints_given[exercise.id] = given + 1


def solution(id: str = "") -> None:
    """Print one solution of an exercise.

    Raises
    ------
    UnknownId
        When there is no such exercise.
    """
    exercise = _find(id, EXERCISES)
    print(f"# One solution of {exercise.id} {exercise.title}; others pass too.")
    print(exercise.solution, end="")


def known_mistakes(id: str) -> dict[str, Callable]:
    """Programs like the solution of an exercise, each with one of the mistakes that `check` names.

    Returns
    -------
    dict of name -> function or class
        In the order of the exercise's page.

    Raises
    ------
    UnknownId
        When there is no such exercise.

    Examples
    --------
    >>> list(known_mistakes("02.1"))[:2]
    ['upper triangle', 'one diagonal too many']
    """
    return {mistake.name: mistake.code for mistake in _find(id, EXERCISES).mistakes}


def predict(id: str = "", answer: str | None = None) -> Question:
    """Ask a prediction, or answer it.

    Parameters
    ----------
    id
        The prediction, such as "03.p1".
    answer
        The letter of a choice. Left out, the question is shown with a button for each choice, and
        with your earlier answer, if there is one. A wrong answer is explained; it does not stop the
        notebook.

    Returns
    -------
    Question
        Shown by Jupyter; its ``str`` says the same in text.

    Raises
    ------
    UnknownId
        When there is no such prediction.
    NotAChoice
        When the answer is none of the choices.
    """
    prediction = _find(id, PREDICTIONS)

    def keep(letter: str) -> str:
        status = "right" if letter == prediction.answer else "wrong"
        return progress_file.keep(prediction.id, "predict", status, answer=letter)

    earlier = progress_file.earlier(prediction.id) if answer is None else ""
    return Question(prediction, answer, earlier=earlier, keep=keep)


@typed
def glossary(term: str = "") -> None:
    """Print what a term means, its synonyms, and which notebook introduces it.

    Parameters
    ----------
    term
        A name or a synonym, such as "attention head" or "heads". Left out, all names are listed.

    Raises
    ------
    UnknownTerm
        When the glossary has no such term.
    """
    if not term:
        for notebook in sorted({known.notebook for known in TERMS.values()}):
            names = [known.name for known in TERMS.values() if known.notebook == notebook]
            print(wrap_text(f"{notebook}: {', '.join(names)}", hanging="    "))
        return
    by_name = {
        name.lower(): known for known in TERMS.values() for name in (known.name, *known.also)
    }
    wanted = term.strip().lower()
    singular = wanted.removesuffix("s") if wanted != "axes" else "axis"
    wanted = wanted if wanted in by_name else singular
    if wanted not in by_name:
        near = difflib.get_close_matches(wanted, by_name, n=3, cutoff=0.6)
        remedy = f"The nearest: {quoted(near)}." if near else "glossary() lists all of them."
        raise UnknownTerm(f"The glossary has no term {term!r}. {remedy}")
    print(wrap_text(str(by_name[wanted])))


def _find(id: str, where: dict) -> Exercise | Prediction:
    """Look up an id; an unknown one raises UnknownId, which says what to do."""
    if isinstance(id, str) and id in where:
        return where[id]
    kind, other = ("exercise", PREDICTIONS) if where is EXERCISES else ("prediction", EXERCISES)
    if isinstance(id, str) and id in other:
        call = f'check("{id}", …)' if other is EXERCISES else f'predict("{id}")'
        raise UnknownId(f"{id} is no {kind}: use {call}.")
    if id == "":
        raise UnknownId(f"Say which {kind}: the heading above it has its id, such as {min(where)}.")
    if str(id) in RETIRED:
        raise UnknownId(f"{id} ({RETIRED[id]}) is no longer in these notebooks.")
    text = f"There is no {kind} {id!r}. {_nearest(str(id), where)}"
    raise UnknownId(text if isinstance(id, str) else f"{text} An id is text, in quotes.")


def _nearest(id: str, where: dict) -> str:
    """Name what a mistyped id may mean: "3.1" is "03.1", and "03.9" one of those of 03."""
    notebook, dot, number = id.strip().partition(".")
    notebook = notebook.zfill(2)
    same_notebook = [known for known in where if known.startswith(f"{notebook}.")]
    if notebook + dot + number in where:
        return f'The nearest: "{notebook}{dot}{number}".'
    if same_notebook:
        return f"Notebook {notebook} has {quoted(same_notebook, 'and')}."
    near = difflib.get_close_matches(id, where, n=1, cutoff=0.7)
    if near:
        return f"The nearest: {quoted(near)}."
    return f'They run from "{min(where)}" to "{max(where)}".'
