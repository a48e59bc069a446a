"""Explorers without Python: what each shows in every setting, computed when the site is built.

The Python explorer itself is driven through its settings. All that it draws and says is stored in
one script a page, compressed, and a small script of the page (static/live.js) looks it up.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import ipywidgets as widgets
from nbformat import NotebookNode

from explorers import Explorer
from explorers.softmax import SCORES

CALL = re.compile(r"explore_\w+\(")


@dataclass(frozen=True)
class Part:
    """The part of an explorer that is live on the site, where all of it would be too much.

    Attributes
    ----------
    values
        By the name of a control: the values that it has on the site. A control without any is left
        out, and keeps its first value.
    note
        A sentence that says what is different in JupyterLab.
    about
        What can be explored on the site, where it is less than the explorer says of itself.
    """

    values: dict[str, list]
    note: str
    about: str = ""


PARTS = {
    "explore_weights": Part(
        {"preset": ["causal", "window", "itself", "decay"], "cells": []},
        "On this page you choose among the presets. In JupyterLab you can also set each weight "
        "with a click.",
        about="choose a preset; see the outputs and the row sums.",
    ),
    "explore_softmax": Part(
        {
            "temperature": [0.1, 0.2, 0.5, 1, 2, 5],
            **{f"token {j}": [0, score, 2] for j, score in enumerate(SCORES)},
        },
        "On this page each score has three values, and the temperature six. In JupyterLab they "
        "move in steps of 0.1.",
    ),
    "explore_query": Part(
        {"length": [n / 2 for n in range(9)]},
        "On this page the length moves in steps of 0.5. In JupyterLab it moves in steps of 0.1.",
    ),
    "explore_painter": Part(
        {
            "rule": ["no rule", "one back", "same letter", "earlier same letter", "largest letter"],
            "sharpness": [4, 20],
            "letter × letter": ["nothing", "same letter", "larger letter is more"],
            "strength of letter × letter": [1, 2],
            "letter × position": [],
            "strength of letter × position": [],
            "position × letter": [],
            "strength of position × letter": [],
            "position × position": ["nothing", "itself", "one back", "one ahead", "column 0"],
            "strength of position × position": [-1, 1],
        },
        "On this page the word stays as it is, and you choose among a few rules and strokes, in "
        "two of the four blocks. In JupyterLab you can write your own word, paint all four, and "
        "aim at more rules.",
        about="choose what stands in two blocks of M; see the scores of a word, its weights, and "
        "whether the rule holds.",
    ),
    "explore_sampling": Part(
        {},
        "On this page the prompt stays as it is. In JupyterLab you can write your own.",
        about="move temperature and top-k; see the probabilities that the next letter is drawn "
        "with.",
    ),
    "explore_sentence": Part(
        {},
        "On this page you choose among eight texts. In JupyterLab you can also write your own, "
        "where the model is installed.",
        about="choose a text; see the next words, and what its last token attends to.",
    ),
    "explore_ward": Part(
        {"third question": []},
        "On this page you ask two questions. In JupyterLab you can ask three, which attention A "
        "needs.",
        about="choose an attention and ask it two questions; see which bugs still fit.",
    ),
}


class CannotRun(Exception):
    """A cell above an explorer raised an error; the message says which."""


def is_explorer(source: str) -> bool:
    """Whether a code cell shows an explorer."""
    return bool(CALL.match(source))


def explorers_of(nb: NotebookNode) -> dict[str, Explorer]:
    """Make the explorers of a notebook by running the cells that they need; by the cells' source.

    Raises
    ------
    CannotRun
        Where one of these cells fails.
    """
    code = [cell.source for cell in nb.cells if cell.cell_type == "code"]
    return {source: _made(code[:n], source) for n, source in enumerate(code) if is_explorer(source)}


def needed(above: list[str], source: str) -> list[str]:
    """Those of the cells above an explorer that have to run first."""
    call = ast.parse(source, mode="eval").body
    # Without arguments it needs nothing but the imports, and 05 need not train first.
    return above if call.args or call.keywords else above[:1]


def _made(above: list[str], source: str) -> Explorer:
    """Make the explorer of a cell, from the code above it."""
    with contextlib.redirect_stdout(io.StringIO()):
        return eval(source, dict(_names_after(tuple(needed(above, source)))))


@cache  # where site and decks are made in one process, as tests do, models train once
def _names_after(cells: tuple[str, ...]) -> dict[str, Any]:
    names: dict[str, Any] = {}
    for cell in cells:
        try:
            exec(cell, names)
        except Exception as error:
            first = cell.splitlines()[0]
            raise CannotRun(f"the cell `{first}` raised {type(error).__name__}: {error}") from None
    return names


class Live:
    """An explorer with all that it draws and says on the site.

    Parameters
    ----------
    call
        The code that shows it, such as "explore_context(texts, starts)".
    explorer
        The explorer itself, in its first state.
    """

    def __init__(self, call: str, explorer: Explorer) -> None:
        name = call.partition("(")[0]
        part = PARTS.get(name, Part({}, ""))
        self.name, self.explorer, self.note = name.removeprefix("explore_"), explorer, part.note
        self.about = part.about or explorer.about
        self.classes = " ".join(explorer.view._dom_classes)
        self.html, self.words = state(explorer)
        self.values = {
            key: part.values.get(key, _all_values(control))
            for key, control in explorer.controls.items()
        }
        self.values = {key: values for key, values in self.values.items() if values}

    @property
    def controls(self) -> Iterator[dict[str, Any]]:
        """What the page needs to know of each control, at its first value."""
        for key, values in self.values.items():
            control = self.explorer.controls[key]
            kinds = {widgets.Checkbox: "checkbox", widgets.Dropdown: "select"}
            kinds |= {widgets.Combobox: "select"}  # where nothing can be written
            yield {
                "name": control.description,
                "kind": kinds.get(type(control), "range"),
                "options": [_text(control, value) for value in values],
                "at": values.index(control.value),
            }

    @cached_property
    def script(self) -> str:
        """The script that holds all states, in the place of its name in LIVE."""
        first = {key: control.value for key, control in self.explorer.controls.items()}
        states: list[str] = []
        tree = self._walk(list(self.values), states)
        for key, value in first.items():
            self.explorer.controls[key].value = value
        data = json.dumps({"tree": tree, **packed(states)}, ensure_ascii=False)
        stored = base64.b64encode(zlib.compress(data.encode(), 9)).decode()
        return f'(window.LIVE ??= {{}}).{self.name} = "{stored}";\n'

    def _walk(self, names: list[str], states: list[str]) -> list | int:
        """Draw every setting of these controls; a tree of places in ``states``, by control."""
        if not names:
            states.append("\0".join(state(self.explorer)))
            return len(states) - 1
        control, branches = self.explorer.controls[names[0]], []
        for value in self.values[names[0]]:
            control.value = value
            branches.append(self._walk(names[1:], states))
        return branches


def state(explorer: Explorer) -> tuple[str, str]:
    """What an explorer draws now, and the same in words."""
    return explorer.view.value, str(explorer).partition("\nNow: ")[2]


def packed(states: list[str]) -> dict[str, list]:
    """Store what the states have in common once.

    Cut at its numbers, a state is a template and the numbers that stand in it. States with the
    same template have a group; a number that is the same in the whole group joins the template.
    Each state becomes the place of its template and the rest of its numbers.
    """
    groups: dict[tuple[str, ...], list[int]] = {}
    numbers = []
    for place, text in enumerate(states):
        parts = re.split(r"([\d.]+)", text)
        groups.setdefault(tuple(parts[::2]), []).append(place)
        numbers.append(parts[1::2])
    templates, stored = [], [[]] * len(states)
    for around, places in groups.items():
        template = [around[0]]
        moving = []
        for i, text in enumerate(around[1:]):
            values = {numbers[place][i] for place in places}
            if len(values) == 1:
                template[-1] += values.pop() + text
            else:
                moving.append(i)
                template.append(text)
        for place in places:
            stored[place] = [len(templates), *(numbers[place][i] for i in moving)]
        templates.append(template)
    return {"templates": templates, "states": stored}


def _all_values(control: widgets.Widget) -> list:
    """Every value that a control can have."""
    if isinstance(control, widgets.Checkbox):
        return [False, True]
    if isinstance(control, widgets.IntSlider):
        return list(range(control.min, control.max + 1, control.step))
    if isinstance(control, widgets.FloatSlider):
        steps = round((control.max - control.min) / control.step)
        return [round(control.min + i * control.step, 6) for i in range(steps + 1)]
    return list(control.options) if hasattr(control, "options") else []


def _text(control: widgets.Widget, value: Any) -> str:
    """How a value is written beside its control."""
    return format(value, getattr(control, "readout_format", ""))
