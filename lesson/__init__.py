"""What a learner calls in a notebook: predict, check, hint, solution, kept, review and more.

- `cells`: predict, check, hint, solution and glossary. `errors`: what they raise. `question`: a
  prediction with buttons.
- `mine`: kept and earlier. `own_file`: the learner's file. `sources`: finds an answer's text.
- `progress_file`: keeps a learner's answers. `progress_view`: shows them. `series_view`: the map.
- `reviews`: asks some of them again on later days.
- `builds`: what a learner builds as a class or a loop, and the judges of that.
- `exercises`: for each notebook a page, with all that is told about its exercises, predictions and
  terms, and a file with what is computed. `pages` joins the two; `terms`: what a term is.
"""

import attention_base  # noqa: F401  (it says so where there is no PyTorch)
from lesson.builds.steps import as_pytorch
from lesson.cells import check, glossary, hint, known_mistakes, predict, solution
from lesson.errors import CheckFailed, LessonError, NotAChoice, UnknownId, UnknownTerm
from lesson.exercises import EXERCISES, PREDICTIONS, TERMS
from lesson.mine import earlier, kept
from lesson.progress_view import progress
from lesson.reviews import review
from lesson.series_view import series_map

__all__ = [
    "EXERCISES",
    "PREDICTIONS",
    "TERMS",
    "CheckFailed",
    "LessonError",
    "NotAChoice",
    "UnknownId",
    "UnknownTerm",
    "as_pytorch",
    "check",
    "earlier",
    "glossary",
    "hint",
    "kept",
    "known_mistakes",
    "predict",
    "progress",
    "review",
    "series_map",
    "solution",
]
