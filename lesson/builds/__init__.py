"""The parts that a learner builds as a class or a loop, judged by what they do.

`build` makes an exercise of one, such as "Head"; its right answer stands in `right`, or in
`right_08` or `right_14` if it is a newer version of what an earlier notebook has built.

- `builds.md`: the mistakes, each a change of a right program, and what is told about them.
- `calling`: makes and calls a class. `classes`: judges these, up to a block; `steps`
  looks for an attention whose layers are unusual. `gpt`: judges the model. `training`: the loop.
- `turned`: judges an attention with rotary positions. `cached`: what has a cache.
"""

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from attention_base.known import Known
from feedback.grading import Exercise, Mistake
from feedback.judge import Verdict
from lesson import sources
from lesson.builds.cached import judge_cached_attention, judge_cached_block, judge_cached_gpt
from lesson.builds.calling import RIGHT, TOLD, Begun, Wrong, changed
from lesson.builds.classes import judge_attention, judge_block, judge_feed_forward, judge_head
from lesson.builds.gpt import judge_gpt
from lesson.builds.training import judge_train
from lesson.builds.turned import judge_turned

__all__ = [
    "JUDGES",
    "TOLD",
    "Begun",
    "Build",
    "Wrong",
    "build",
    "judge",
]
JUDGES = {
    "Head": judge_head,
    "train": judge_train,
    "MultiHeadAttention": judge_attention,
    "FeedForward": judge_feed_forward,
    "Block": judge_block,
    "TinyGPT": judge_gpt,
    "08.MultiHeadAttention": judge_turned,
    "14.MultiHeadAttention": judge_cached_attention,
    "14.Block": judge_cached_block,
    "14.TinyGPT": judge_cached_gpt,
}


def judge(build: str, names: Mapping[str, Any]) -> Verdict:
    """Judge what a learner has built; what it raises becomes a verdict, but for an interrupt.

    Parameters
    ----------
    build
        Its name, such as "Head", or its id for a newer version, such as "08.MultiHeadAttention".
    names
        The namespace in which the learner's parts live: the globals of a notebook, or of a file.

    Returns
    -------
    Verdict
        "passed", with notes; "not attempted", for a stub, also where a part of it is done; or
        "failed", with the name of the mistake if it is a known one.
    """
    try:
        notes = JUDGES[build](names)
    except NotImplementedError as begun:
        return Verdict("not attempted", None, str(begun) or "not attempted yet.")
    except Wrong as wrong:
        return Verdict("failed", wrong.name or None, wrong.message)
    return Verdict("passed", None, TOLD[build].lines[0].text, notes=tuple(notes))


# ---------------------------------------------------------------- as exercises


class Build(Exercise):
    """An exercise that asks for a class or a loop, which its judge looks at where it lives."""

    def check(self, candidate: Any) -> Verdict:
        """Judge a candidate among the parts that stand beside it."""
        names = {**sources.names_of(candidate), self.reference.__name__: candidate}
        return judge(self._build, names)

    @property
    def _build(self) -> str:
        return self.id if self.id in TOLD else self.reference.__name__

    @property
    def solution(self) -> str:
        """The text of the reference."""
        return inspect.getsource(self.reference)

    def changed(self, known: Known) -> Callable:
        """The reference with the changes of a mistake, in a namespace of its own."""
        return changed(self._build, known)

    def recognises(self, mistake: str) -> bool:
        """Any name will do: many are those of any class, or of `attention_clinic`."""
        return bool(mistake)


def build(name: str) -> Build:
    """A build, named as for `judge`; ``builds.md`` tells what a page tells of others."""
    section = TOLD[name]
    id, _, title = section.head.partition(" ")
    return Build(
        id,
        RIGHT[name],
        cases=list,  # none: the judge has its own
        title=title,
        checked=section.lines[0].text,
        hints=tuple(item.text for item in section.items),
        mistakes=tuple(
            # What the judge fills in stands in braces.
            Mistake(replace(known, message=re.sub(r"(\{\w+\})+", "…", known.message)))
            for known in section.entries
        ),
    )
