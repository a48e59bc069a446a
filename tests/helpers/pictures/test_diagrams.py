import functools
import itertools
import re

import numpy as np
import pytest
import torch
from matplotlib.colors import to_hex
from matplotlib.patches import Circle, FancyBboxPatch, Polygon, Rectangle
from matplotlib.text import Text

from helpers.attention import Head, MultiHeadAttention, padding_mask
from helpers.gpt import TinyGPT
from helpers.pictures import (
    block_diagram,
    encoder_decoder_diagram,
    gpt_diagram,
    head_diagram,
    lookup_diagram,
    multi_head_diagram,
)
from helpers.pictures.base import png_of, size_of
from helpers.pictures.colours import CELL, INK, LINE, MARKED_CELL, ORANGE, PALE, QUIET
from helpers.sorter import PAD, Sorter, fill
from lesson import series_map
from tests.helpers.pictures import reading

NUMBERS = {"B": None, "T": 6, "C": 3, "head_size": 2, "value_size": 4}
ALL = {
    "series, first": lambda: series_map("00"),
    "series, middle": lambda: series_map("04"),
    "series, last": lambda: series_map("07"),
    "lookup": lookup_diagram,
    "head": head_diagram,
    "head in numbers": lambda: head_diagram(**NUMBERS),
    "largest head": lambda: head_diagram(B=4, T=256, C=384, head_size=64),
    "multi-head": multi_head_diagram,
    "two heads": lambda: multi_head_diagram(2),
    "two heads in numbers": lambda: multi_head_diagram(2, B=4, T=8, C=32),
    "six heads": lambda: multi_head_diagram(6),
    "block": block_diagram,
    "gpt": gpt_diagram,
    "encoder and decoder": encoder_decoder_diagram,
}
BOXES = (FancyBboxPatch, Circle)
SHAPE = re.compile(r"\([^()]*, [^()]*\)")
every = pytest.mark.parametrize("name", ALL)


class Drawn:
    """What stands where in a figure, read back from its artists, in CSS pixels, y down."""

    def __init__(self, picture):
        self.figure = picture.figure()
        png_of(self.figure)  # texts have no size before
        (self.ax,) = self.figure.axes
        patches = self.ax.patches
        self.boxes = [(p.get_gid(), self.place(p)) for p in patches if type(p) in BOXES]
        self.arrows = [(p.get_gid(), self.place(p)) for p in patches if type(p) is Polygon]
        self.frames = [self.place(p) for p in patches if type(p) is Rectangle]
        self.texts = [(t, self.place(t)) for t in self.ax.texts if t.get_text()]

    def place(self, artist):
        """Left, top, right, bottom."""
        if isinstance(artist, Text):
            box = artist.get_window_extent()
        else:  # without the line around it
            box = artist.get_path().get_extents(artist.get_transform())
        (x0, y0), (x1, y1) = self.ax.transData.inverted().transform(box)
        return min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)


@functools.cache
def drawn_as(name):
    return Drawn(ALL[name]())


def inside(one, two, slack=0.5):
    return all(a >= b - slack for a, b in zip(one[:2], two[:2], strict=True)) and all(
        a <= b + slack for a, b in zip(one[2:], two[2:], strict=True)
    )


def apart(one, two, slack=1.0):
    return (
        one[2] <= two[0] + slack
        or two[2] <= one[0] + slack
        or one[3] <= two[1] + slack
        or two[3] <= one[1] + slack
    )


@every
def test_every_diagram_has_its_three_faces(name):
    picture = ALL[name]()
    data, metadata = picture._repr_mimebundle_()
    lines = data["text/plain"].splitlines()
    assert lines[0].startswith("Diagram: ")
    assert len(lines) <= 25 and max(map(len, lines)) <= 80
    assert 20 < len(metadata["image/png"]["alt"]) < 700
    assert metadata["image/png"]["width"] <= 900
    assert len(picture.png()) < 60_000
    html = picture.html()
    assert html.count("<table") == html.count("</table>") >= 1
    assert html.count('scope="row"') >= 3
    assert 'scope="col"' in html


@every
def test_texts_are_readable_and_do_not_cover_each_other(name):
    drawn = drawn_as(name)
    page = (0, 0, *size_of(drawn.figure))
    for text, place in drawn.texts:
        assert text.get_fontsize() >= 11
        assert inside(place, page), f"cut off: {text.get_text()!r}"
    for (a, one), (b, two) in itertools.combinations(drawn.texts, 2):
        assert apart(one, two), f"{a.get_text()!r} lies on {b.get_text()!r}"


@every
def test_a_text_stands_in_its_box_or_beside_all_boxes_arrows_and_frames(name):
    drawn = drawn_as(name)
    filled = set()
    for text, place in drawn.texts:
        for gid, box in drawn.boxes:
            if inside(place, box):
                filled.add(box)
            else:
                assert apart(place, box, slack=-1), f"{text.get_text()!r} touches {gid}"
        for gid, arrow in drawn.arrows:
            assert apart(place, arrow), f"{text.get_text()!r} lies on {gid}"
        for frame in drawn.frames:
            assert inside(place, frame) or apart(place, frame, slack=-1), text.get_text()
    points = {box for _, box in drawn.boxes if box[2] - box[0] < 10}
    assert filled == {box for _, box in drawn.boxes} - points


@every
def test_boxes_lie_on_the_page_and_apart(name):
    drawn = drawn_as(name)
    page = (0, 0, *size_of(drawn.figure))
    assert len(drawn.boxes) >= 6
    assert all(inside(box, page) for _, box in drawn.boxes)
    assert all(inside(frame, page) for frame in drawn.frames)
    for (a, one), (b, two) in itertools.combinations(drawn.boxes, 2):
        assert apart(one, two, slack=-6), f"{a} lies on {b}"


@every
def test_arrows_lead_straight_from_edge_to_edge_and_cross_no_box(name):
    drawn = drawn_as(name)
    for gid, arrow in drawn.arrows:
        touched = [box_gid for box_gid, box in drawn.boxes if not apart(arrow, box, slack=-0.1)]
        assert len(touched) == 2, f"{gid} touches {touched}"
        names = [touching.removeprefix("box ") for touching in touched]
        assert gid in {f"arrow {a} {b}" for a, b in itertools.permutations(names)}
        assert all(apart(arrow, box, slack=0.1) for _, box in drawn.boxes), gid
    for (a, one), (b, two) in itertools.combinations(drawn.arrows, 2):
        assert apart(one, two), f"{a} crosses {b}"


@every
def test_an_arrow_points_from_its_start_to_its_end(name):
    drawn = drawn_as(name)
    arrows = [p for p in drawn.ax.patches if type(p) is Polygon]
    for arrow, (gid, _) in zip(arrows, drawn.arrows, strict=True):
        corners = arrow.get_xy()[:-1]
        tail, tip = (corners[0] + corners[-1]) / 2, corners[3]
        touched = [
            [box for box, at in drawn.boxes if not apart((*end, *end), at, slack=-0.1)]
            for end in (tail, tip)
        ]
        ((start,), (end,)) = [[box.removeprefix("box ") for box in boxes] for boxes in touched]
        assert gid == f"arrow {start} {end}"
        wide = [np.ptp(corners[[i, -1 - i]], axis=0).sum() for i in range(3)]
        assert wide[0] == pytest.approx(wide[1]), "a shaft is as thick at its end"
        is_point = end.startswith("branch")
        assert (wide[2] == pytest.approx(wide[1])) == is_point, "a tip, but at a branching point"


@every
def test_the_steps_in_words_are_the_rows_of_the_tables(name):
    picture = ALL[name]()
    unwrapped = str(picture).replace("\n    ->", " ->").splitlines()
    told = [line.split(" -> ") for line in unwrapped if " -> " in line]
    rows = []
    for table in reading.read_html(picture.html()):
        assert table.corner in ("operation", "notebook") and table.columns[-1] != ""
        for does, cells in zip(table.names, table.cells, strict=True):
            step = dict(zip(table.columns, cells, strict=True))
            note = step.get("explained in") or step.get("place")
            gives = f"{step.get('gives', '')} {step.get('shape', '')}".strip()
            parts = [step.get("takes", ""), f"{does} [{note}]" if note else does, gives]
            rows.append([part for part in parts if part])
    assert [row for row in rows if len(row) > 1] == told
    assert all(row[0] in unwrapped for row in rows if len(row) == 1)


@every
def test_the_drawing_and_the_text_version_say_the_same(name):
    picture = ALL[name]()
    drawn = [text.get_text() for text, _ in drawn_as(name).texts]
    words = " ".join(str(picture).split())
    html = " ".join(re.sub("<[^>]+>", " ", picture.html()).split())
    shapes = set(SHAPE.findall(" ".join(drawn)))
    assert shapes == set(SHAPE.findall(words)) == set(SHAPE.findall(html))
    for text in drawn:
        assert text in HEADERS or all(line in words for line in text.split("\n")), text


# Heads of columns without an operation, and of the row of notes.
HEADERS = {"query", "value", "explained in"}


@every
def test_there_is_one_accent(name):
    drawn = drawn_as(name)
    used = {to_hex(text.get_color()) for text, _ in drawn.texts}
    for patch in drawn.ax.patches:
        used |= {to_hex(patch.get_facecolor())} if patch.get_fill() else set()
        used |= {to_hex(patch.get_edgecolor())} if patch.get_linewidth() else set()
    assert used <= {CELL, INK, LINE, MARKED_CELL, ORANGE, PALE, QUIET, "#ffffff"}
    assert ORANGE in used


def test_the_arrows_of_a_lookup_are_as_thick_as_their_weights():
    (ax,) = lookup_diagram().figure().axes
    arrows = [p for p in ax.patches if type(p) is Polygon]
    assert len(arrows) == 3 + 4 * 3  # one way through the dictionary, four through attention
    thick = {}
    for arrow in arrows[3:]:
        (_, top), *_, (_, bottom) = arrow.get_xy()[:-1]
        thick.setdefault(arrow.get_gid().split()[1], []).append(abs(bottom - top))
    weights = [0.03, 0.70, 0.07, 0.20]
    assert thick["query"] == pytest.approx([thick["query"][0]] * 4)
    for column in ("key", "value"):
        assert [t / sum(thick[column]) for t in thick[column]] == pytest.approx(weights)
    assert sum(weights) == pytest.approx(1)


def shapes_in(picture):
    """What comes out under which name: {"q": "(4, 8, 16)", …}."""
    return dict(re.findall(r"-> ([^>]*?) (\([\d, ]+\))$", str(picture), re.MULTILINE))


def test_the_shapes_of_a_head_are_those_of_the_module():
    head, x = Head(32, 16), torch.randn(4, 8, 32)
    out, weights = head(x, return_weights=True)
    made = {"q": head.query(x), "k": head.key(x), "v": head.value(x), "weights": weights}
    made |= {"scaled scores": weights, "masked": weights, "out": out}
    told = shapes_in(head_diagram(B=4, T=8, C=32, head_size=16))
    assert told == {name: str(tuple(tensor.shape)) for name, tensor in made.items()}
    assert shapes_in(head_diagram(**NUMBERS))["out"] == "(6, 4)"
    assert "/ √2" in str(head_diagram(**NUMBERS))


def test_the_shapes_of_multi_head_attention_are_those_of_the_module():
    many, x = MultiHeadAttention(32, 2), torch.randn(4, 8, 32)
    part = many.query(x).unflatten(-1, (2, 16)).transpose(1, 2)  # (B, n_head, T, head_size)
    picture = multi_head_diagram(2, B=4, T=8, C=32)
    told = shapes_in(picture)
    assert told["q"] == told["k"] == told["v"] == str(tuple(many.query(x).shape))
    assert told["slice 0, slice 1"] == told["out 0"] == str(tuple(part[:, 0].shape))
    assert told["merged"] == told["out"] == str(tuple(many(x).shape))
    assert f"{tuple(part.shape)} @ {tuple(part.mT.shape)}" in str(picture)


def test_a_norm_stands_on_the_residual_stream_with_post_norm_only():
    (ax,) = block_diagram().figure().axes
    arrows = [p for p in ax.patches if type(p) is Polygon]
    stream = [p.get_gid().split(" ", 1)[1] for p in arrows if to_hex(p.get_facecolor()) == ORANGE]
    pre, post = stream[: stream.index("add 2 out") + 1], stream[stream.index("add 2 out") + 1 :]
    assert "norm" not in " ".join(pre)
    assert post[2:4] == ["add 1 norm_1", "norm_1 branch 2"]
    assert post[-2:] == ["add 2 norm_2", "norm_2 out"]
    told = str(block_diagram())
    assert "norm_1(x) -> residual branch: attention: across tokens -> attention(norm_1(x))" in told
    assert "x + attention(x) -> residual stream: norm_1 -> x (B, T, C)" in told


def test_the_shapes_of_a_gpt_are_those_of_the_model():
    model, made = TinyGPT(5, 8, n_layer=1), {"ids": torch.zeros(3, 8, dtype=torch.long)}
    model.blocks[0].register_forward_hook(lambda block, x, out: made.update(x=out))
    made["logits"] = model(made["ids"])
    told = dict(re.findall(r"(\w+) \(([^)]*)\)", str(gpt_diagram())))
    sizes = {"B": 3, "T": 8, "C": 64, "vocab_size": 5}
    for name, tensor in made.items():
        assert tuple(sizes[letter] for letter in told[name].split(", ")) == tuple(tensor.shape)


def test_the_shapes_of_encoder_and_decoder_are_those_of_the_model():
    model, ids, letters = Sorter(), fill(["cat", "background"]), fill(["^a", "^a"])
    told, sizes = str(encoder_decoder_diagram()), {"B": 2, "T_k": 10, "T_q": 2, "C": 32}
    memory = model.read(ids, padding_mask(ids != PAD))
    made = {
        "what is read": ids,
        "memory": memory,
        "what is written so far": letters,
        "what comes next": model.write(memory, letters),
    }
    for name, tensor in made.items():
        (letters,) = {*re.findall(rf"{name} (\(B, [^)]*\))", told)}
        in_numbers = re.sub(r"[A-Z]\w*", lambda letter: str(sizes[letter[0]]), letters)
        assert in_numbers == str(tuple(tensor.shape))


def test_only_the_memory_gives_the_cross_attention_keys_and_values():
    (ax,) = encoder_decoder_diagram().figure().axes
    arrows = [p for p in ax.patches if type(p) is Polygon]
    marked = [p.get_gid() for p in arrows if to_hex(p.get_facecolor()) == ORANGE]
    assert marked == ["arrow memory cross"]
    told = str(encoder_decoder_diagram())
    assert "keys, values, queries -> decoder: cross-attention mask: padding of what is read" in told


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: head_diagram(T=0), "T must be a whole number of at least 1, or a name.*got 0"),
        (lambda: head_diagram(C=True), "C must be .*got True"),
        (lambda: head_diagram(head_size=2.0), "head_size must be .*got 2.0"),
        (lambda: head_diagram(value_size=""), "value_size must be .*got ''"),
        (lambda: head_diagram(B="batch size"), "B must be .*got 'batch size'"),
        (lambda: head_diagram(B=64, T=1024, C=768), "pixels and has 880; write letters such as T"),
        (lambda: multi_head_diagram(1), "2 to 6 heads, got n_head=1"),
        (lambda: multi_head_diagram(7), "2 to 6 heads, got n_head=7"),
        (lambda: multi_head_diagram(C=30), "C = 30 channels .* n_head = 4 heads"),
        (lambda: multi_head_diagram(T=None), "T must be .*got None"),
    ],
)
def test_bad_input_is_refused_in_words(call, words):
    with pytest.raises(ValueError, match=words):
        call()
