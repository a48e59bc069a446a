"""Judges the parts that a learner builds, by what they do, and names their mistakes.

- `builds.md`: the mistakes, each a change of a program of `right`, and what is told about them.
- `calling`: makes and calls a class. `classes`: judges a head, an attention and a block; `steps`
  looks for an attention whose layers are unusual. `gpt`: judges the model. `training`: the loop.
"""

from collections.abc import Mapping
from typing import Any

from feedback.judge import Verdict
from lesson.builds.calling import TOLD, Begun, Wrong
from lesson.builds.classes import judge_attention, judge_block, judge_head
from lesson.builds.gpt import judge_gpt
from lesson.builds.training import judge_train

__all__ = [
    "JUDGES",
    "TOLD",
    "Begun",
    "Wrong",
    "judge",
    "judge_attention",
    "judge_block",
    "judge_gpt",
    "judge_head",
    "judge_train",
]
JUDGES = {
    "Head": judge_head,
    "train": judge_train,
    "MultiHeadAttention": judge_attention,
    "Block": judge_block,
    "TinyGPT": judge_gpt,
}


def judge(build: str, names: Mapping[str, Any]) -> Verdict:
    """Judge what a learner has built; what it raises becomes a verdict, but for an interrupt.

    Parameters
    ----------
    build
        Its name or its id, such as "Head" or "04.Head".
    names
        The namespace in which the learner's parts live: the globals of a notebook, or of a file.

    Returns
    -------
    Verdict
        "passed", with notes; "not attempted", for a stub, also where a part of it is done; or
        "failed", with the name of the mistake if it is a known one.
    """
    build = build.rpartition(".")[2]
    try:
        notes = JUDGES[build](names)
    except NotImplementedError as begun:
        return Verdict("not attempted", None, str(begun) or "not attempted yet.")
    except Wrong as wrong:
        return Verdict("failed", wrong.name or None, wrong.message)
    return Verdict("passed", None, TOLD[build].lines[0].text, notes=tuple(notes))
