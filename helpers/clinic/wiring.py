"""Known bugs of a block: its four parts are right, and put together in a wrong way.

`block_output` puts the parts together as its arguments say. Each bug, told in ``block.md``, is a
call with other arguments.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from helpers.known import Known, PageError, read

# Where the norm stands, as a function of what is added to (the residual stream), what the branch
# reads, the branch and its norm.
NORM_PLACES: dict[str, Callable[..., Tensor]] = {
    "pre": lambda stream, x, branch, norm: stream + branch(norm(x)),
    "post": lambda stream, x, branch, norm: norm(stream + branch(x)),
    "on the residual stream": lambda stream, x, branch, norm: norm(stream) + branch(norm(x)),
    "after the branch": lambda stream, x, branch, norm: stream + norm(branch(x)),
    "twice": lambda stream, x, branch, norm: stream + branch(norm(norm(x))),
}


def block_output(
    x: Tensor,
    attention: Callable[[Tensor], Tensor],
    feed_forward: Callable[[Tensor], Tensor],
    norm_1: Callable[[Tensor], Tensor],
    norm_2: Callable[[Tensor], Tensor],
    *,
    norm_place: str | tuple[str, str] = "pre",
    order: Sequence[int] = (0, 1),
    residual: tuple[float, float] = (True, True),
    norms: tuple[int | None, int | None] = (0, 1),
    branches: tuple[int, int] = (0, 1),
    share: float = 1.0,
    parallel: bool = False,
) -> Tensor:
    """The output of a block that is put together from its four parts.

    Parameters
    ----------
    x
        (B, T, C), the input of the block.
    attention, feed_forward, norm_1, norm_2
        The parts, each a function (B, T, C) -> (B, T, C).
    norm_place
        "pre": x + branch(norm(x)); "post": norm(x + branch(x)); or another of `NORM_PLACES`. Two of
        them, where the attention and the feed-forward differ.
    order
        Which branches there are, 0 = attention and 1 = feed-forward, in this order.
    residual
        How often x is added to the attention, and to the feed-forward.
    norms
        Which norm the attention has, and which the feed-forward, 0 = norm_1; None for no norm.
    branches
        Which part stands in the place of the attention, and which in that of the feed-forward.
    share
        What each sum is multiplied by.
    parallel
        Whether both branches read the input of the block.

    Returns
    -------
    Tensor
        (B, T, C)
    """
    places = (norm_place, norm_place) if isinstance(norm_place, str) else norm_place
    stream = x  # the residual stream
    for i in order:
        branch, norm = (attention, feed_forward)[branches[i]], lambda z: z
        if norms[i] is not None:
            norm = (norm_1, norm_2)[norms[i]]
        added_to = residual[i] * stream
        read = x if parallel else stream
        stream = NORM_PLACES[places[i]](added_to, read, branch, norm)
        stream = stream if share == 1 else stream * share
    return stream


_SECTIONS = read(Path(__file__).with_name("block.md"))
# Some models are built like this on purpose.
ON_PURPOSE = {b.name for one in _SECTIONS for b in one.entries if b.settings.pop("on_purpose", 0)}
EXERCISE_BUGS, *_ALONE = (section.entries for section in _SECTIONS)
WIRING_BUGS = [*EXERCISE_BUGS, *itertools.chain(*_ALONE)]
for _bug in WIRING_BUGS:
    if _unknown := _bug.settings.keys() - block_output.__kwdefaults__.keys():
        raise PageError(
            f"{_bug.where}, “{_bug.name}”: there is no setting {min(_unknown)}. Choose from "
            f"{', '.join(block_output.__kwdefaults__)}."
        )


def wiring_bugs_and_pairs() -> Iterator[tuple[tuple[Known, ...], dict[str, Any]]]:
    """Each wiring bug, then two at a time, with the arguments of `block_output` for them.

    A bug that says nothing about the norm's place is there twice, pre-norm and post-norm.
    """
    for count in (1, 2):
        for bugs in itertools.combinations(WIRING_BUGS, count):
            changed = [argument for bug in bugs for argument in bug.settings]
            if len(changed) > len(set(changed)):  # the two exclude each other
                continue
            for norm_place in ("pre",) if "norm_place" in changed else ("pre", "post"):
                arguments: dict[str, Any] = {"norm_place": norm_place}
                for bug in bugs:
                    arguments |= bug.settings
                yield bugs, arguments
