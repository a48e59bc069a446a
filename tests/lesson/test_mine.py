"""The learner's own file: what is kept, what is refused, and that nothing of theirs is lost."""

import inspect
import os
import re
import subprocess
import sys

import pytest
import torch

import lesson
from attention_clinic import diagnose
from lesson import mine
from lesson.builds import JUDGES, build, right, right_14
from lesson.exercises import EXERCISES, nb00, nb03
from tests.cells import fresh_shell
from tests.lesson.build_answers import RIGHT

SETUP = """\
import random
from itertools import pairwise
import torch
import torch.nn as nn
import torch.nn.functional as F
import lesson
"""
COUNT = """\
def count(text):
    table = {letter: {} for letter in text}
    for a, b in pairwise(text):
        table[a][b] = table[a].get(b, 0) + 1
    return table
"""
WRITE = """\
def write(guess, start, n):
    for _ in range(n):
        counts = guess(start)
        start += random.choices(list(counts), list(counts.values()))[0]
    return start
"""
GENERATE = """\
@torch.no_grad()
def generate(model, ids, n, temperature=1.0):
    for _ in range(n):
        logits = model(ids[:, -model.context_length:])[:, -1]
        new = torch.multinomial((logits / temperature).softmax(-1), 1)
        ids = torch.cat([ids, new], dim=1)
    return ids
"""
OF = {
    "count": ("00.count", COUNT),
    "write": ("00.write", WRITE),
    "generate": ("03.generate", GENERATE),
}

NEWER = {
    name: f"{notebook}.{name.rpartition('.')[2]}"
    for notebook, names in {
        "08": ["turn", "08.MultiHeadAttention"],
        "14": ["14.MultiHeadAttention", "14.Block", "14.TinyGPT", "14.generate"],
    }.items()
    for name in names
}


@pytest.fixture
def shell(kept):
    with fresh_shell() as shell:
        shell.run(SETUP)
        yield shell


@pytest.fixture
def file(kept):
    return kept.with_name("mine.py")


def said(ran):
    """What a cell told, as one line."""
    assert ran.error is None or isinstance(ran.error, lesson.LessonError), ran.error
    return " ".join((ran.printed + str(ran.error or "")).split())


def check(shell, name, source="", id=""):
    known, own = OF[name]
    return said(shell.run(f'{source or own}\n\n{name} = lesson.check("{id or known}", {name})'))


def test_what_passes_is_kept_with_its_id_once_and_with_what_it_imports(shell, file):
    assert "mine.py has 15 lines, and can count pairs of letters." in check(shell, "count")
    for name in ("generate", "write", "count"):
        told = check(shell, name)
    assert "mine.py has it already." in told
    lines = file.read_text().splitlines()
    assert lines[6:10] == ["import random", "from itertools import pairwise", "", "import torch"]
    marks = [line[2:] for line in lines if line[:3] == "# 0"]
    assert marks == ["00.count", "03.generate", "00.write"]
    assert file.read_text().endswith(f"\n\n\n# 00.write\n{WRITE}")
    assert subprocess.run([sys.executable, file]).returncode == 0
    kept = shell.run('lesson.kept("write", "count")').value
    assert [one.__module__ for one in kept] == ["mine", "mine"]
    told = str(lesson.progress())
    assert "00.write ✓ done 5 lines" in " ".join(told.split()) and "write with any model" in told
    assert (
        "your 5 lines" in lesson.series_map("00").alt
        or "your 10 lines" in lesson.series_map("03").alt
    )


def test_a_new_answer_takes_the_place_of_the_old_one_which_can_be_seen_again(shell, file):
    check(shell, "write")
    check(shell, "count")
    newer = WRITE.replace("start += ", "start = start + ")
    assert "Kept:" in check(shell, "write", newer)
    assert file.read_text().index(newer) < file.read_text().index(COUNT)
    told = said(shell.run('lesson.earlier("write")'))
    assert "start += random" in told and "start = start" not in told
    of_letters = COUNT.replace("pairwise(text)", "zip(text, text[1:])")
    before = file.read_text()
    file.write_text(f"{before}\npairs = pairwise  # by hand\n")
    assert "Kept:" in check(shell, "count", of_letters)
    assert "import pairwise" in file.read_text()  # a line outside of all parts uses it
    file.write_text(before)
    assert "Kept:" in check(shell, "count", of_letters)
    assert "pairwise" not in file.read_text()  # nothing uses it any more
    assert "There is no earlier train." in said(shell.run('lesson.earlier("train")'))
    told = said(shell.run('lesson.earlier("00.elephant")'))
    assert "no earlier elephant. Kept were so far: count and write." in told


def test_what_was_changed_by_hand_stays(shell, file):
    check(shell, "write")
    by_hand = file.read_text().replace("counts = guess(start)", "counts = guess(start)  # mine")
    file.write_text(by_hand)
    assert "you have changed write in" in check(shell, "write")
    assert file.read_text() == by_hand
    assert said(shell.run('w = lesson.kept("write")')) == ""  # and is used
    file.write_text(by_hand.replace("range(n)", "range(n - 1)"))
    assert "can count pairs of letters. Its write does not" in check(shell, "count")
    file.write_text(by_hand)
    assert "Kept:" in check(shell, "count")  # other parts still find their place
    assert "# mine" in file.read_text()


def test_an_older_notebook_does_not_put_the_old_part_back(shell, file, monkeypatch):
    later = lesson.EXERCISES["00.write"]
    monkeypatch.setitem(lesson.EXERCISES, "08.write", later)
    assert "Kept:" in mine.keep("08.write", shell.run(f"{WRITE}\nwrite").value)
    newer = WRITE.replace("_ in", "i in")
    assert "keeps your write of 08.write, which came later" in check(shell, "write", newer)
    assert "i in" not in file.read_text()


def test_functions_of_the_same_cell_come_along_and_others_are_asked_for(shell, file):
    split = "def draw(counts):\n    return random.choices([*counts], [*counts.values()])[0]\n\n\n"
    short = (
        WRITE.split("        counts")[0] + "        start += draw(guess(start))\n    return start\n"
    )
    shell.run(split)
    told = check(shell, "write", short)
    assert "write uses draw, which stands in another cell of this notebook only." in told
    assert not file.exists()
    assert "Kept:" in check(shell, "write", split + short)
    assert f"# 00.write\n{split}# 00.write\n{short}" in file.read_text()
    size = "SIZE = 2  # a value of the same cell\n\n\n"
    new = split.replace("draw", "pick") + WRITE.replace("range(n)", "range(n * SIZE // 2)")
    assert "Kept:" in check(shell, "write", size + new)
    assert f"\n\n\n# 00.write\n{size}# 00.write\ndef write" in file.read_text()
    assert "draw" not in file.read_text()  # which nobody uses any more
    told = " ".join(str(lesson.progress()).split())
    assert "00.write ✓ done 6 lines" in told and "your 6 lines" in lesson.series_map("01").alt
    clash = size.replace("2 ", "1 ") + COUNT.replace(" + 1", " + SIZE")
    assert "has another SIZE, of 00.write. Give yours another name." in check(shell, "count", clash)


def test_a_helper_that_a_hand_changed_one_uses_stays(shell, file):
    helpers = "def one():\n    return 1\n\n\ndef two():\n    return one() + 1\n\n\n"
    check(shell, "write", helpers + WRITE.replace("range(n)", "range(n * two() // 2)"))
    file.write_text(file.read_text().replace("one() + 1", "one() + 1  # mine"))
    assert "Kept:" in check(shell, "write")
    assert {"one", "two"} < mine.read(file).parts.keys()


def test_names_of_a_class_and_of_values_that_come_from_nowhere(shell, file):
    inner = "class Times:\n    one = 1\n    two = one + 1\n\n\n"
    assert "Kept:" in check(shell, "write", inner + WRITE.replace("(n)", "(n * Times.one)"))
    shell.run("odd = more = lambda n: n\nodd.__module__, odd.__name__ = 'no.such', 'odd'")
    told = check(shell, "count", COUNT.replace("    table =", "    more(odd(text))\n    table ="))
    assert "count uses more, which stands in another cell" in told
    assert "only; count uses odd, which" in told  # both at once


def test_a_stub_that_is_run_again_leaves_the_kept_part_in_its_place(shell, file):
    stub = WRITE.split("\n")[0] + "\n    raise NotImplementedError\n"
    assert "The reference stands in" in check(shell, "write", stub)
    check(shell, "write")
    told = check(shell, "write", stub)
    assert "○ 00.write" in told and "The one in your file stands in" in told
    assert shell.run("write.__module__").value == "mine"


def test_a_part_that_breaks_another_is_not_kept(shell, file, monkeypatch):
    """As when MultiHeadAttention is made of Head, and a new Head has another signature."""
    check(shell, "count")
    user = "def write(guess, start, n):\n    count(start)\n" + WRITE.split("\n", 1)[1]
    assert "Kept:" in check(shell, "write", user)
    before = file.read_text()
    assert "Kept:" in check(shell, "count", COUNT.replace("(text)", "(text, more=0)", 1))
    narrow = COUNT.replace("table = {", "assert text != 'xya'\n    table = {")
    told = check(shell, "count", narrow)
    assert "Not kept: with it, your write in" in told and "would no longer pass" in told
    assert file.read_text() == before.replace("count(text)", "count(text, more=0)", 1)


def test_the_reference_stands_in_and_a_line_says_so(shell, file):
    ran = shell.run('lesson.kept("generate")')
    assert ran.value is right_14.generate and "has none yet (you write it from 03 on)" in said(ran)
    assert shell.run('lesson.kept("03.generate")').value is nb03.generate
    check(shell, "write")
    file.write_text(file.read_text().replace("range(n)", "range(n - 1)"))
    ran = shell.run('lesson.kept("write")')
    assert ran.value is nb00.write and "does not pass: one letter too few." in said(ran)
    assert "builds a part 'Hed'. The parts are count, write" in said(
        shell.run('lesson.kept("Hed")')
    )


def test_an_import_that_stood_in_goes_when_the_part_comes(shell, file):
    shell.run("from lesson.exercises.nb00 import count")
    user = "def write(guess, start, n):\n    count(start)\n" + WRITE.split("\n", 1)[1]
    check(shell, "write", user)
    line = "from lesson.exercises.nb00 import count  # until 00.count is yours\n"
    assert line in file.read_text()
    assert said(shell.run('lesson.kept("write")')) == ""
    check(shell, "count")
    assert line not in file.read_text()
    assert mine.read(file).parts.keys() == {"write", "count"}


@pytest.mark.parametrize(
    ("name", "make", "told"),
    [
        ("no Python", lambda f: f.write_text("def write(\n"), "line 1, is no Python"),
        ("a null byte", lambda f: f.write_bytes(b"x = 1\0"), "is no Python"),
        ("twice", lambda f: f.write_text(WRITE + COUNT + WRITE), "write twice, in lines 1 and 11"),
        ("a folder", lambda f: f.mkdir(), "is a folder. Move it away"),
        ("no text", lambda f: f.write_bytes(b"\xff\xfe"), "is no text in UTF-8"),
        ("large", lambda f: f.write_text("#" * 1_100_000), "more than 1,000,000 are not read"),
        ("a dangling link", lambda f: f.symlink_to("nowhere"), "link to a file that is not there"),
        ("a pipe", lambda f: os.mkfifo(f), "is no ordinary file"),
        ("stops", lambda f: f.write_text("1 / 0\n"), "It stops in line 1: ZeroDivisionError"),
        ("ends Python", lambda f: f.write_text("raise SystemExit\n"), "It ends Python."),
    ],
)
def test_a_file_that_cannot_be_used_stays_and_is_told(shell, file, name, make, told):
    make(file)
    before = file.read_bytes() if file.is_file() else None
    assert told in check(shell, "count")
    assert (file.read_bytes() if file.is_file() else None) == before
    if name == "ends Python":
        file.write_text(COUNT + "raise SystemExit\n")
        assert "It ends Python." in said(shell.run('lesson.kept("count")'))
    assert "✓ done" in str(lesson.progress())


@pytest.mark.skipif(sys.platform != "linux", reason="a file that even root cannot read")
def test_a_file_that_cannot_be_read_is_told(shell, file):
    file.symlink_to("/proc/self/mem")
    assert 'mine.py cannot be read ("Input/output error").' in check(shell, "count")


def test_a_file_that_sleeps_is_stopped_and_one_that_prints_is_silent(shell, file, monkeypatch):
    check(shell, "count")
    noisy = f"from itertools import pairwise\nprint('here I am')\n{COUNT}"
    file.write_text(noisy)
    assert said(shell.run('lesson.kept("count")')) == ""
    monkeypatch.setattr(mine, "SECONDS", 0.5)
    file.write_text(noisy + "import time\ntime.sleep(9)\n")
    assert "takes longer than 0.5 seconds" in said(shell.run('lesson.kept("count")'))


def test_a_file_that_was_emptied_or_deleted_begins_anew(shell, file):
    check(shell, "count")
    file.write_text("\n")
    assert "Kept:" in check(shell, "write") and "count" not in mine.read(file).parts
    file.unlink()
    assert "Kept:" in check(shell, "count")
    assert said(shell.run('lesson.earlier("write")')) != ""


def test_windows_line_ends_are_no_change(shell, file):
    check(shell, "count")
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    assert "Kept:" in check(shell, "count", COUNT.replace("table", "counts"))


def test_a_file_that_may_only_be_read_stays(shell, file):
    check(shell, "count")
    file.chmod(0o444)
    assert "may only be read" in check(shell, "write")
    assert "write" not in mine.read(file).parts


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("exec('def write(guess, start, n):' + BODY)", "write stays in this notebook: its text"),
        (
            "def hide(f):\n    return lambda *a: f(*a)\n\n\n@hide\n" + WRITE,
            "your answer is called <lambda>",
        ),
        (
            "def make():\n    def write(guess, start, n):BODY\n    return write\n\nwrite = make()",
            "write stays in this notebook: no line of its cell says `def write`",
        ),
    ],
)
def test_an_answer_without_a_source_stays_in_its_notebook(shell, file, source, told):
    body = WRITE.split(":", 1)[1]
    shell.run(f"BODY = {body!r}")
    source = source.replace("):BODY", "):" + body.replace("\n", "\n    "))
    told_all = check(shell, "write", source)
    assert "✓ 00.write" in told_all and f"Not kept: {told}" in told_all
    assert not file.exists()


def test_an_answer_that_is_pasted_twice_is_kept_as_it_runs(shell, file):
    check(shell, "write", WRITE.replace("start", "text") + "\n\n" + WRITE)
    assert "start" in mine.read(file).parts["write"].text


def test_two_notebooks_at_once_lose_nothing(shell, file):
    """Both have read the file before one of them writes."""
    check(shell, "count")
    old, tried = file.read_text(), mine._tried

    def meanwhile(new, before):
        mine._tried = tried
        file.write_text(old + "\n\nx = 1\n")
        return tried(new, before)

    mine._tried = meanwhile
    assert "Kept:" in check(shell, "write")
    assert "x = 1" in file.read_text() and WRITE in file.read_text()


def test_a_torn_history_counts_as_none(shell, file, kept):
    check(shell, "count")
    history = kept.with_name("mine_history.jsonl")
    history.write_bytes(history.read_bytes()[:-30] + b'\n[1]\n{"name')
    check(shell, "write")
    assert "Kept:" in check(shell, "write", WRITE.replace("_ in", "i in"))
    history.unlink()
    history.mkdir()
    assert "is no ordinary file. Move it away" in check(shell, "write")


def test_switched_off_nothing_is_kept_or_read(shell, file, monkeypatch):
    check(shell, "count")
    before = file.read_text()
    monkeypatch.setenv("ATTENTION_PROGRESS", "0")
    assert "Kept" not in check(shell, "write") and file.read_text() == before
    assert "has none yet" in said(shell.run('lesson.kept("count")'))
    assert "Nothing is kept here" in said(shell.run('lesson.earlier("count")'))


def test_without_its_folder_it_says_so(shell, kept, monkeypatch):
    monkeypatch.setenv("ATTENTION_PROGRESS", str(kept.parent / "gone" / "progress.jsonl"))
    assert "Not kept: there is no folder" in check(shell, "count")


# ---------------------------------------------------------------- classes


@pytest.fixture
def asked(monkeypatch):
    """All builds, whether or not a notebook asks for them already."""
    for name in JUDGES:
        monkeypatch.setitem(lesson.EXERCISES, build(name).id, build(name))
        monkeypatch.setitem(OF, name, (build(name).id, build(name).solution))


OWN_HEADS = RIGHT["MultiHeadAttention own heads, dropout"]


def test_the_file_of_all_builds_trains_a_gpt_that_writes(shell, file, asked):
    for name in [*OF][:7]:
        told = check(shell, name)
    assert "with any model, attend with one head, train a model and attend with many" in told
    block = 'MultiHeadAttention = lesson.kept("MultiHeadAttention")\n\n\n' + OF["Block"][1]
    check(shell, "Block", block)  # with a part of the file in its cell
    assert "with many heads, stack transformer blocks and make a GPT." in check(shell, "TinyGPT")
    text = file.read_text()
    head = "\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n\n# 00.count"
    assert head in text and "import" not in text.split("# 00.count")[1]
    marks = [line[2:] for line in text.splitlines() if line[:3] == "# 0"]
    assert marks == [id for name, (id, _) in OF.items() if "." not in name]
    assert "lesson" not in text
    ran = shell.run('lesson.kept("TinyGPT", "train", "generate", "MultiHeadAttention")')
    assert said(ran) == "" and {part.__module__ for part in ran.value} == {"mine"}
    gpt, train, generate, attention = ran.value
    assert diagnose(attention(12, 2), C=12, n_head=2).status == "healthy"
    torch.manual_seed(0)
    model, ids = gpt(5, 8, C=12, n_head=2), (torch.arange(9) % 5).repeat(4, 1)
    losses = train(model, lambda: ids, 20, lr=0.03)
    assert len(losses) == 20 and losses[-1] < losses[0] / 2
    assert generate(model, ids[:1, :3], 12, temperature=0.1).tolist() == [[*range(5)] * 3]


def test_newer_versions_take_the_places_of_parts_and_older_ones_can_be_had(
    shell, file, asked, monkeypatch
):
    monkeypatch.setattr(mine, "_run", lambda file: "")
    own = OF | {
        name: (id, inspect.getsource(EXERCISES[id].reference)) for name, id in NEWER.items()
    }
    names = ["generate", "train", "MultiHeadAttention", "FeedForward", "Block", "TinyGPT"]
    for name in [*names, *NEWER]:
        id, source = own[name]
        name = name.rpartition(".")[2]
        if name in ("Block", "TinyGPT", "MultiHeadAttention"):
            used = 'turn, MultiHeadAttention, FeedForward, Block = lesson.kept("turn", '
            shell.run(f'{used}"MultiHeadAttention", "FeedForward", "Block")')
        told = said(shell.run(f'{source}\n\n{name} = lesson.check("{id}", {name})'))
        assert "Kept:" in told, told
    marks = re.findall(r"^# (\d\d\.\w+)$", file.read_text(), re.M)
    newest = {**{own[name][0].rpartition(".")[2]: own[name][0] for name in [*names, *NEWER]}}
    assert sorted(marks) == sorted(newest.values())
    gpt, train, generate = shell.run('lesson.kept("TinyGPT", "train", "generate")').value
    torch.manual_seed(0)
    model, ids = gpt(5, 8, C=12, n_head=2), (torch.arange(9) % 5).repeat(4, 1)
    train(model, lambda: ids, 20, lr=0.03)
    texts = [generate(model, ids[:1, :3], 12, temperature=0.01, cached=one) for one in (0, 1)]
    assert texts[0].tolist() == texts[1].tolist()
    attention = shell.run('lesson.kept("MultiHeadAttention")').value
    assert diagnose(attention(12, 2), C=12, n_head=2, expect=["rotary"]).status == "healthy"
    older = shell.run('lesson.kept("06.MultiHeadAttention")').value
    assert older.__module__ == "mine" and diagnose(older(12, 2), C=12, n_head=2).status == "healthy"


def test_a_part_is_judged_by_the_build_that_it_has_passed(file):
    known = right_14.MultiHeadAttention
    parts = map(inspect.getsource, (right_14.turn, known))
    text = "import torch\nfrom torch import nn\n" + "# 14.MultiHeadAttention\n".join(parts)
    file.write_text(text.replace("x, cache=None", "x, cache={}"))
    own = mine.read(file)
    found = mine.failed_in(own, mine.Loaded(own).module)
    assert found == {"MultiHeadAttention": "a shared default"}


def test_a_file_that_stops_only_in_a_notebook_is_told(file):
    file.write_text(COUNT + "import sys\nsys.modules['lesson'].nothing\n")
    own = mine.Loaded(mine.read(file))
    with pytest.raises(mine.NotKept, match=r"mine\.py stops: AttributeError: module 'lesson' has"):
        _ = own.module


def test_check_tells_what_is_begun_wrong_and_worth_a_note(shell, file, asked, monkeypatch):
    monkeypatch.setattr(mine, "_run", lambda file: "")
    half = OF["Head"][1].partition("        q, k, v")[0] + "        raise NotImplementedError\n"
    told = check(shell, "Head", half)
    assert told.startswith("○ 04.Head One head: __init__ runs, and Head(12, 5) has 3 layers with")
    assert "forward comes next. The reference stands in" in told
    assert shell.run("Head").value is right.Head
    told = check(shell, "Head", OF["Head"][1].replace("weights @ v", "weights"))
    assert told.startswith("✗ 04.Head: weights returned These are the weights, (B, T, T)")
    assert told.count('with the values, weights @ v. More: hint("04.Head").') == 2  # and raised
    unmasked = OF["Head"][1].replace('masked_fill(~past, float("-inf"))', "clone()")
    assert "✗ 04.Head: no mask" in check(shell, "Head", unmasked)  # which the clinic names
    assert "04.Head no mask 1 × ✗ not solved" in " ".join(str(lesson.progress()).split())
    told = check(shell, "Head", OF["Head"][1].replace("return", "print(T)\n        return"))
    assert "✓ 04.Head One head: two sizes" in told and "each call of Head prints some" in told
    assert "The one in your file stands in" in check(shell, "Head", half)


def test_a_part_of_an_earlier_notebook_is_asked_for(shell, file, asked):
    told = check(shell, "Block")
    assert "`self.attention = MultiHeadAttention(C, n_head)`. `MultiHeadAttention` is not" in told
    assert 'MultiHeadAttention = kept("MultiHeadAttention") takes it from your file.' in told


def test_a_reference_stands_in_the_file_until_the_part_comes(shell, file, asked, monkeypatch):
    monkeypatch.setattr(mine, "_run", lambda file: "")
    shell.run('MultiHeadAttention, FeedForward = lesson.kept("MultiHeadAttention", "FeedForward")')
    assert "Kept:" in check(shell, "Block")
    line = "from lesson.builds.right_14 import MultiHeadAttention  # until 06.MultiHeadAttention is"
    assert line in file.read_text()
    assert "Kept:" in check(shell, "MultiHeadAttention")
    assert line not in file.read_text() and said(shell.run('lesson.kept("Block")')) == ""


def test_a_feed_forward_of_the_block_is_kept_as_its_own(shell, file, asked, monkeypatch):
    """Once 07.Block asked for both classes, and both stood under its mark."""
    monkeypatch.setattr(mine, "_run", lambda file: "")
    shell.run('MultiHeadAttention = lesson.kept("MultiHeadAttention")')
    both = f"{OF['FeedForward'][1]}\n\n{OF['Block'][1]}"
    with monkeypatch.context() as once:
        once.setattr(mine, "_id_of", lambda name, id: id)
        check(shell, "Block", both)
    for name, source, id in (
        ("Block", RIGHT["Block RMSNorm, GELU, a feed-forward of its own"], "07.Block"),
        ("FeedForward", RIGHT["FeedForward a Sequential, GELU, dropout"], "07.FeedForward"),
        ("Block", both, "07.FeedForward"),
    ):
        assert "Kept:" in check(shell, name, source)
        assert [part.id for part in mine.read(file).parts.values()] == [id, "07.Block"]
    told = said(shell.run('lesson.earlier("FeedForward")'))
    assert "GELU" not in file.read_text() and "# 07.FeedForward, kept" in told and "GELU" in told


def test_a_head_that_breaks_the_heads_is_not_kept(shell, file, asked, monkeypatch):
    monkeypatch.setattr(mine, "_run", lambda file: "")
    check(shell, "Head")
    by_name = OWN_HEADS.replace("Head(C, C //", "Head(C, head_size=C //")
    assert "Kept:" in check(shell, "MultiHeadAttention", by_name)
    told = check(shell, "Head", OF["Head"][1].replace("head_size", "d"))
    assert "Not kept: with it, your MultiHeadAttention in" in told
    assert "would no longer pass: a part made with other arguments." in told
    assert "Kept:" in check(shell, "Head", OF["Head"][1].replace("q.shape[-1]", "k.shape[-1]"))
