"""The cells whose outputs nbval does not compare, with the reason each. There are no others.

Such a cell carries the tag nbval-ignore-output, and its output is compared by ``tests/stored.py``
instead: the words as they are, the numbers as far as ``share`` says. ``make refresh`` keeps a
stored output that still holds so.
"""

import math
import re
from dataclasses import dataclass

TAG = "nbval-ignore-output"


@dataclass(frozen=True)
class IgnoredCell:
    """A cell whose output differs from machine to machine.

    Parameters
    ----------
    notebook
        Its number.
    first_line
        The first line of the cell.
    why
        Why its output differs.
    share
        The largest difference between two machines, as a share of the larger number; None where
        any number is right.
    words
        Whether the words are the same everywhere; they are not where a model writes.
    """

    notebook: str
    first_line: str
    why: str
    share: float | None
    words: bool = True


VERSIONS = "the versions that are installed"

TRAINED = "hundreds of steps of training, in which processors round differently"
WRITTEN = "what a training tells or a model writes, in which processors round differently"
TIMES = "times, or what is drawn of them"
HELP = "the texts of Python's help, which differ from version to version"

IGNORED_CELLS = (
    IgnoredCell(
        "00",
        'text = " ".join(python_help().split())  # each run of blanks becomes one',
        HELP,
        None,
        words=False,
    ),
    IgnoredCell("00", "letters = sorted(set(text))  # (you may skip this code)", HELP, 0.1),
    IgnoredCell("00", "def guess(text):", HELP, None, words=False),
    IgnoredCell("00", "# which versions ran: this output differs between machines", VERSIONS, None),
    IgnoredCell("01", "corpus = Corpus(drop_repeats(python_help()))", HELP, 0.1),
    IgnoredCell(
        "03",
        'start = torch.tensor([[letters.index(letter) for letter in "The cat"]])  # (1, 7)',
        HELP,
        None,
        words=False,
    ),
    IgnoredCell("05", 'text = " ".join(python_help().split())', HELP, None, words=False),
    IgnoredCell("05", "def draw_texts():", TRAINED, 0.3),
    IgnoredCell(
        "05",
        "torch.manual_seed(0)  # the same random numbers as those of the raw heads",
        TRAINED,
        0.3,
    ),
    IgnoredCell("05", "def heads_that_learn(lr, divisor, size=1.0):", TRAINED, None),
    IgnoredCell("05", "for lr in [0.003, 0.03, 0.3]:", TRAINED, None),
    IgnoredCell(
        "07",
        'count, train, generate = kept("count", "train", "generate")',
        WRITTEN,
        None,
        words=False,
    ),
    IgnoredCell("07", 'for ending in ["th", "sh"]:', TRAINED, 0.3),
    IgnoredCell(
        "08",
        'TinyGPT, train_gpt, generate = kept("TinyGPT", "train", "generate")',
        WRITTEN,
        None,
        words=False,
    ),
    IgnoredCell("08", "torch.manual_seed(0)  # words backwards, with positions", TRAINED, 0.1),
    IgnoredCell("08", "torch.manual_seed(0)  # three back", TRAINED, None),
    IgnoredCell("08", "def with_rotary(n_block, n_head):", TRAINED, 0.3),
    IgnoredCell("08", "i, j = torch.arange(40)[:, None], torch.arange(40)", TRAINED, None),
    IgnoredCell("08", "torch.manual_seed(0)  # words backwards, rotary", TRAINED, 0.3),
    IgnoredCell("08", "from_start = partial(backwards, start=True)", TRAINED, 0.1),
    IgnoredCell("09", 'ids = fill(["cat", "background"])', TRAINED, 0.1),
    IgnoredCell("09", 'word = "background"', TRAINED, 0.1),
    IgnoredCell(
        "10",
        "torch.set_num_threads(1)  # small tensors: several threads would only wait for each other",
        HELP,
        None,
        words=False,
    ),
    IgnoredCell(
        "10",
        'TinyGPT, train, generate = kept("TinyGPT", "train", "generate")',
        WRITTEN,
        None,
        words=False,
    ),
    IgnoredCell(
        "10",
        "def draw_windows():  # ids (16, 65), others at each call",
        WRITTEN,
        None,
        words=False,
    ),
    IgnoredCell(
        "10",
        "gpt.eval()  # no dropout from here on, if yours has some",
        WRITTEN,
        None,
        words=False,
    ),
    IgnoredCell("10", "explore_sampling(gpt, letters, prompt)", WRITTEN, None, words=False),
    IgnoredCell(
        "10",
        "tables = [count_after(corpus.training, k) for k in range(7)]  # some seconds",
        HELP,
        0.1,
    ),
    IgnoredCell(
        "10",
        "held_out = corpus.windows(64)  # (N, 65): the validation text, cut into windows",
        TRAINED,
        None,
    ),
    IgnoredCell("10", "broken = mask_after()", WRITTEN, None, words=False),
    IgnoredCell("10", "write(broken, prompt, 150)", WRITTEN, None, words=False),
    IgnoredCell("10", "as_they_come = Corpus(text)", HELP, 0.3),
    IgnoredCell("10", "some = held_out[::10]  # every tenth window, to save time", TRAINED, 0.3),
    IgnoredCell("10", "beginning = prompt[:14]", TRAINED, None),
    IgnoredCell("10", "sums = []", TRAINED, None),
    IgnoredCell("10", "repaired = OurGPT(vocab_size=V, context_length=64)", TRAINED, None),
    IgnoredCell("10", "shipped, its_letters = shipped_model()", WRITTEN, None, words=False),
    IgnoredCell("11", "for head_size in (1, 2):", TRAINED, 0.3),
    IgnoredCell("11", 'one = learn_rule(RULES["same letter"], head_size=2)', TRAINED, 0.3),
    IgnoredCell(
        "12",
        "torch.set_num_threads(1)  # small tensors: several threads would only wait for each other",
        WRITTEN,
        None,
        words=False,
    ),
    IgnoredCell("12", "torch.manual_seed(0)", WRITTEN, None, words=False),
    IgnoredCell("12", "steps = [moment.step for moment in two_moments]", TRAINED, 0.1),
    IgnoredCell("12", "def mean_induction_score(maps, periods=periods):", TRAINED, 0.1),
    IgnoredCell("12", "of_equal = run_with(two_layers, 1, read, patched, equal)", TRAINED, 0.1),
    IgnoredCell("12", "def with_one_back(model, ids):", WRITTEN, None, words=False),
    IgnoredCell("12", "def by_distance(maps):", TRAINED, 0.2),
    IgnoredCell("12", "weaker = 0.42 * one_back", TRAINED, 0.3),
    IgnoredCell("12", "two_back = tokens_back({2: 1.0})(48)", TRAINED, 0.3),
    IgnoredCell(
        "12",
        'by_hand = trained_on_repeats("first layer by hand")  # 200 steps, `one_back` in layer 0',
        WRITTEN,
        None,
        words=False,
    ),
    IgnoredCell(
        "12",
        'TinyGPT, train = kept("TinyGPT", "train")  # from work/mine.py, your own',
        WRITTEN,
        None,
        words=False,
    ),
    IgnoredCell(
        "12",
        "previous = previous_token_score(weights[0]).mean(dim=0)  # (4,)",
        TRAINED,
        None,
        words=False,
    ),
    IgnoredCell("12", "removed = {", TRAINED, 0.3),
    IgnoredCell("12", "def right_without(*heads):  # each is (layer, head)", TRAINED, None),
    IgnoredCell("12", "in_yours = {", TRAINED, None, words=False),
    IgnoredCell(
        "13",
        "torch.set_num_threads(1)  # small tensors: several threads would only wait for each other",
        HELP,
        0.1,
    ),
    IgnoredCell("13", "def write(name, model):", WRITTEN, None, words=False),
    IgnoredCell("13", "fixed = around(attend_to_kept)", WRITTEN, None, words=False),
    IgnoredCell(
        "14",
        """begin = ['The "for" statement ', "If the expression is", "Python is a language"]""",
        WRITTEN,
        None,
        words=False,
    ),
    IgnoredCell("14", "torch.manual_seed(0)  # as in the beginning", TIMES, None),
    IgnoredCell("14", "def in_twenties(seconds):", TIMES, None),
    IgnoredCell("14", "def formula(q, k, v):", TIMES, None),
    IgnoredCell(
        "15",
        'print(whole_model_in(yours, fill, "The cat was warm, so it"))',
        "what is said where no model is installed, or what your class writes",
        None,
        words=False,
    ),
)


def first_line(source: str) -> str:
    """The first line of a cell that says anything."""
    return next((line.strip() for line in source.splitlines() if line.strip()), "")


def listed(notebook: str, source: str) -> IgnoredCell | None:
    """The entry of a cell in the list."""
    for cell in IGNORED_CELLS:
        if (cell.notebook, cell.first_line) == (notebook, first_line(source)):
            return cell
    return None


NUMBER = re.compile(r"(?<![\w.])-?\d[\w.+-]*")  # a version, too: 2.13.0+cpu
NEAR_ZERO = {"decimal": 0.02, "count": 10}  # a difference that the share alone would not allow


def text_of(outputs: list) -> str:
    """All that is stored below a cell, as text."""
    return "".join(o.get("text", "") or o.get("data", {}).get("text/plain", "") for o in outputs)


def differences(old: str, new: str, share: float | None) -> list[str]:
    """What an output says otherwise than another one, in words; nothing where both may be right."""
    if _form(old) != _form(new):
        return [f"the words differ:\n{_form(old)}\n{_form(new)}"]
    if share is None:
        return []
    pairs = zip(NUMBER.findall(old), NUMBER.findall(new), strict=True)
    return [f"{a} against {b}" for a, b in pairs if not _are_near(a, b, share)]


def _form(text: str) -> str:
    """The text with # for each number, and one space for many: columns may be wider."""
    return "\n".join(" ".join(line.split()) for line in NUMBER.sub("#", text).splitlines())


def _are_near(old: str, new: str, share: float) -> bool:
    """Whether two numbers could come from two machines."""
    try:
        a, b = float(old), float(new)
    except ValueError:  # a version
        return old == new
    slack = 0.0 if "e" in old + new else NEAR_ZERO["decimal" if "." in old + new else "count"]
    return math.isclose(a, b, rel_tol=share, abs_tol=slack)
