"""What a cell stores and no longer gives, where nbval does not look.

nbval compares neither a picture nor its alt text, and of a cell that is tagged
nbval-ignore-output nothing at all.
"""

import base64
import io

from tools import ignored_cells
from tools.ignored_cells import differences, text_of

TILE = 16  # dots: a picture is compared tile by tile, since one cell of many is a small part
# How far a tile may lie off on average, of 255. Drawn twice, or on two threads, a picture has the
# same dots; numbers that are all off by 0.0001 make 0.8; 0.05 in one of 64 x 64 cells makes 7.7.
MOST = 4.0
# Cells, by their first lines, whose pictures state in words what they show, since training on
# another processor draws other dots: of an emulated one, these were the two that differed.
OTHER_DOTS = (
    "tables = [count_after(corpus.training, k) for k in (0, 1)]",
    "before = both_losses(n_step=400)",
)


def stale(number, cell, outputs):
    """Say in words what a cell of notebook ``number`` stores otherwise than it gives now."""
    entry = ignored_cells.listed(number, cell.source)
    kept, made = pictures(cell.outputs), pictures(outputs)
    if len(kept) != len(made):
        yield f"pictures: {len(kept)} are stored, {len(made)} are made"
    compares_dots = not entry and ignored_cells.first_line(cell.source) not in OTHER_DOTS
    for old, new in zip(kept, made, strict=False):
        if _size(old) != _size(new):
            yield "another picture, of another size"
        elif (
            compares_dots and (apart := distance(*(p.data["image/png"] for p in (old, new)))) > MOST
        ):
            yield f"another picture, {apart:.0f} of 255 away"
        if not entry:
            yield from _otherwise(old, new)
    if not entry:
        return
    if entry.words:
        yield from differences(_told(cell.outputs), _told(outputs), entry.share)
    elif bool(text_of(cell.outputs)) != bool(text_of(outputs)):
        yield "a text stands in the stored outputs or in the new ones, not in both"


def pictures(outputs):
    """The outputs that hold a picture."""
    return [output for output in outputs if "image/png" in output.get("data", {})]


def _told(outputs):
    """All texts of a cell, with those for people who do not see its pictures."""
    alts = [output.metadata.get("image/png", {}).get("alt", "") for output in pictures(outputs)]
    return "\n".join([text_of(outputs), *alts])


def _otherwise(old, new):
    """What differs of two pictures but for their dots: kinds, texts, alt texts."""
    if set(old.data) != set(new.data):
        yield f"stored are {sorted(old.data)}, made are {sorted(new.data)}"
        return
    for kind in set(new.data) - {"image/png"}:
        if old.data[kind] != new.data[kind]:
            yield f"another {kind}:\n{old.data[kind]}\n--- now:\n{new.data[kind]}"
    if old.metadata != new.metadata:
        yield f"stored is {old.metadata}, now it is {new.metadata}"


def _size(picture):
    """Width and height of a PNG, in dots, as its first bytes have them."""
    return base64.b64decode(picture.data["image/png"][:32])[16:]


def distance(png, other):
    """How far two pictures of one size lie apart: the mean over the tile that differs most."""
    if png == other:
        return 0.0
    import numpy as np  # here, since every run of pytest reads this file
    from PIL import Image

    one, two = (
        np.asarray(Image.open(io.BytesIO(base64.b64decode(p))).convert("RGB"), float)
        for p in (png, other)
    )
    apart = np.abs(one - two).mean(2)
    high, wide = (-(-n // TILE) * TILE for n in apart.shape)
    apart = np.pad(apart, [(0, high - apart.shape[0]), (0, wide - apart.shape[1])])
    return apart.reshape(high // TILE, TILE, wide // TILE, TILE).mean((1, 3)).max()
