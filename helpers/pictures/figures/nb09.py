"""Pictures that only notebook 09 shows: `encoder_decoder_diagram`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from helpers.pictures.base import Picture
from helpers.pictures.diagrams import Arrow, Box, Panel, diagram

if TYPE_CHECKING:
    pass


def encoder_decoder_diagram() -> Picture:
    """Draw an encoder beside a decoder, with their three attentions and the mask of each."""
    boxes = [
        Box("word", "what is read", 0, 0, shape="(B, T_k)", data=True),
        Box("encoder", "self-attention\nmask: padding", 0, 1),
        Box("encoder FFN", "feed-forward", 0, 2),
        Box("memory", "memory", 0, 3, shape="(B, T_k, C)", data=True),
        Box("written", "what is written so far", 1, 0, shape="(B, T_q)", data=True),
        Box("decoder", "self-attention\nmask: causal", 1, 1),
        Box("cross", "cross-attention\nmask: padding of what is read", 1, 3, look="accent"),
        Box("decoder FFN", "feed-forward", 1, 4),
        Box("next", "what comes next", 1, 5, shape="(B, T_q, 26)", data=True),
    ]
    arrows = [
        Arrow("word", "encoder"),
        Arrow("encoder", "encoder FFN"),
        Arrow("encoder FFN", "memory"),
        Arrow("memory", "cross", "keys,\nvalues", width=3, accent=True),
        Arrow("written", "decoder"),
        Arrow("decoder", "cross", "queries"),
        Arrow("cross", "decoder FFN"),
        Arrow("decoder FFN", "next"),
    ]
    return diagram(
        "Three attentions, each with its own mask",
        [Panel(boxes, arrows, heads=("encoder", "decoder"), row_height=58)],
        alt=(
            "Two columns of boxes. Encoder, downwards: what is read, self-attention with a mask "
            "for padding, feed-forward, memory. Decoder, downwards: what is written so far, "
            "self-attention with a causal mask, cross-attention, feed-forward, what comes next. A "
            "thick arrow brings keys and values from the memory to the cross-attention, whose "
            "mask closes the padding of what is read; its queries come from above."
        ),
    )
