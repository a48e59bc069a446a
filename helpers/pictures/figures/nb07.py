"""Pictures that only notebook 07 shows: `block_diagram`, `gpt_diagram`."""

from __future__ import annotations

from helpers.pictures.base import Picture
from helpers.pictures.diagrams import Arrow, Box, Panel, diagram


def block_diagram() -> Picture:
    """Draw a transformer block with pre-norm and with post-norm, side by side."""
    tensor = "(B, T, C)"
    x = Box("x", "x", 0, 0, shape=tensor, data=True)
    out = Box("out", "out", 0, 7, shape=tensor, data=True)
    stream = {"width": 5, "accent": True}
    heads = ("residual stream", "residual branch")
    attends, feeds = "attention:\nacross tokens", "feed-forward:\neach token alone"
    pre = Panel(
        [
            x,
            Box("branch 1", "", 0, 1, look="accent"),
            Box("norm_1", "norm_1", 1, 1),
            Box("attention", attends, 1, 2),
            Box("add 1", "+", 0, 2),
            Box("branch 2", "", 0, 4, look="accent"),
            Box("norm_2", "norm_2", 1, 4),
            Box("feed-forward", feeds, 1, 5),
            Box("add 2", "+", 0, 5),
            out,
        ],
        [
            Arrow("x", "branch 1", **stream),
            Arrow("branch 1", "add 1", **stream),
            Arrow("branch 1", "norm_1"),
            Arrow("norm_1", "attention", "norm_1(x)", shown=False),
            Arrow("attention", "add 1", "attention(norm_1(x))", shown=False),
            Arrow("add 1", "branch 2", "x", tensor, **stream),
            Arrow("branch 2", "add 2", **stream),
            Arrow("branch 2", "norm_2"),
            Arrow("norm_2", "feed-forward", "norm_2(x)", shown=False),
            Arrow("feed-forward", "add 2", "feed_forward(norm_2(x))", shown=False),
            Arrow("add 2", "out", **stream),
        ],
        title="pre-norm: x + f(norm(x))",
        heads=heads,
        gap=90,
    )
    post = Panel(
        [
            x,
            Box("branch 1", "", 0, 1, look="accent"),
            Box("attention", attends, 1, 1.5, 2),
            Box("add 1", "+", 0, 2),
            Box("norm_1", "norm_1", 0, 3),
            Box("branch 2", "", 0, 4, look="accent"),
            Box("feed-forward", feeds, 1, 4.5, 2),
            Box("add 2", "+", 0, 5),
            Box("norm_2", "norm_2", 0, 6),
            out,
        ],
        [
            Arrow("x", "branch 1", **stream),
            Arrow("branch 1", "add 1", **stream),
            Arrow("branch 1", "attention"),
            Arrow("attention", "add 1", "attention(x)", shown=False),
            Arrow("add 1", "norm_1", "x + attention(x)", shown=False, **stream),
            Arrow("norm_1", "branch 2", "x", tensor, **stream),
            Arrow("branch 2", "add 2", **stream),
            Arrow("branch 2", "feed-forward"),
            Arrow("feed-forward", "add 2", "feed_forward(x)", shown=False),
            Arrow("add 2", "norm_2", "x + feed_forward(x)", shown=False, **stream),
            Arrow("norm_2", "out", **stream),
        ],
        title="post-norm: norm(x + f(x))",
        heads=heads,
        gap=90,
    )
    return diagram(
        "The block: with pre-norm, no norm stands on the residual stream",
        [pre, post],
        alt=(
            "Two panels, each with the residual stream as a thick line from x down to out, and two "
            "branches that leave it and come back to be added: attention, then feed-forward. With "
            "pre-norm the norms stand in the branches, and nothing but the two additions is on "
            "the line. With post-norm each norm stands on the line, after the addition."
        ),
    )


def gpt_diagram() -> Picture:
    """Draw a GPT from ids to logits, with the shape of what goes from step to step."""
    stream = {"name": "x", "shape": "(B, T, C)", "width": 5, "accent": True}
    boxes = [
        Box("ids", "ids", 0, 0, shape="(B, T)", data=True),
        Box("embedding", "nn.Embedding", 0, 1),
        Box("blocks", "n_layer blocks", 0, 2.3),
        Box("norm", "norm", 0, 3.6),
        Box("linear", "Linear layer", 0, 4.9),
        Box("logits", "logits", 0, 5.9, shape="(B, T, vocab_size)", data=True),
    ]
    arrows = [
        Arrow("ids", "embedding"),
        Arrow("embedding", "blocks", **stream),
        Arrow("blocks", "norm", **stream),
        Arrow("norm", "linear", shape="(B, T, C)"),
        Arrow("linear", "logits"),
    ]
    return diagram(
        "A GPT, from ids to logits",
        [Panel(boxes, arrows)],
        alt=(
            "One column from ids down to logits: an embedding, the blocks, a norm and a Linear "
            "layer. A thick line, the residual stream, runs from the embedding through all blocks."
        ),
    )
