"""Known bugs of a block: its four parts are right, and put together in a wrong way.

`block_output` puts the parts together as its arguments say. Each of the `WIRING_BUGS` changes one
or more of these arguments.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

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


@dataclass(frozen=True)
class WiringBug:
    """A known bug of putting a block together: the arguments of `block_output` that it changes.

    ``on_purpose``: some models are built like this on purpose.
    """

    name: str
    message: str
    changed: Mapping[str, Any]
    on_purpose: bool = False


WIRING_BUGS = (
    WiringBug(
        "no residual connections",
        "Nothing is added: x is replaced twice. It is x + attention(…), then x + feed_forward(…).",
        {"residual": (False, False)},
    ),
    WiringBug(
        "no residual connection around the attention",
        "The attention replaces x instead of adding to it.",
        {"residual": (False, True)},
    ),
    WiringBug(
        "no residual connection around the feed-forward",
        "The feed-forward replaces x instead of adding to it.",
        {"residual": (True, False)},
    ),
    WiringBug(
        "one norm for both",
        "norm_1 was used twice, norm_2 never. At initialisation all norms are equal: the bug shows "
        "after training.",
        {"norms": (0, 0)},
    ),
    WiringBug(
        "one norm for both",
        "norm_2 was used twice, norm_1 never. At initialisation all norms are equal: the bug shows "
        "after training.",
        {"norms": (1, 1)},
    ),
    WiringBug(
        "norms swapped",
        "norm_1 belongs to the attention, norm_2 to the feed-forward. At initialisation all norms "
        "are equal: the bug shows after training.",
        {"norms": (1, 0)},
    ),
    WiringBug(
        "no norms",
        "norm_1 and norm_2 were not used: nothing keeps the size of x in range. Each branch needs "
        "its norm.",
        {"norms": (None, None)},
    ),
    WiringBug(
        "no norm for the attention",
        "norm_1 was not used: the attention needs its norm too.",
        {"norms": (None, 1)},
    ),
    WiringBug(
        "no norm for the feed-forward",
        "norm_2 was not used: the feed-forward needs its norm too.",
        {"norms": (0, None)},
    ),
    WiringBug(
        "norm on the residual stream",
        "x itself was replaced by its norm. Only the branch reads norm(x); the residual stream "
        "keeps x.",
        {"norm_place": "on the residual stream"},
    ),
    WiringBug(
        "norm after the branch",
        "This is x + norm(f(x)), which some models do on purpose. Pre-norm is x + f(norm(x)), "
        "post-norm is norm(x + f(x)).",
        {"norm_place": "after the branch"},
        on_purpose=True,
    ),
    WiringBug(
        "no attention",
        "The output of the attention was not used: no token attends to another. Look "
        "whether attention(norm_1(x)) is added to x, and the sum kept.",
        {"order": (1,)},
    ),
    WiringBug(
        "no feed-forward",
        "The output of the feed-forward was not used. Look whether feed_forward(norm_2(x)) is "
        "added to x, and the sum kept.",
        {"order": (0,)},
    ),
    WiringBug(
        "feed-forward before attention",
        "First attention, then feed-forward.",
        {"order": (1, 0)},
    ),
    WiringBug(
        "parallel branches",
        "Both branches read the same x, which some models do on purpose. Here the feed-forward "
        "reads what the attention has added: update x in between.",
        {"parallel": True},
        on_purpose=True,
    ),
)

# Those that only `diagnose` looks for.
MODULE_WIRING_BUGS = (
    WiringBug(
        "parallel branches with one norm",
        "Both branches read norm_1(x), as in GPT-J, and norm_2 is not used. Here the feed-forward "
        "reads what the attention has added, through a norm of its own.",
        {"parallel": True, "norms": (0, 0)},
        on_purpose=True,
    ),
    WiringBug(
        "half residual connections",
        "Input and output of a branch are averaged, so the input fades by half each time. Add "
        "them, without dividing.",
        {"share": 0.5},
    ),
    WiringBug(
        "residual connection added twice",
        "x is added twice around the attention, so the residual stream doubles. Add it once.",
        {"residual": (2, 1)},
    ),
    WiringBug(
        "residual connection added twice",
        "x is added twice around the feed-forward, so the residual stream doubles. Add it once.",
        {"residual": (1, 2)},
    ),
    WiringBug(
        "norm applied twice",
        "norm_1 is applied to its own output. Once is enough.",
        {"norm_place": ("twice", "pre")},
    ),
    WiringBug(
        "norm applied twice",
        "norm_2 is applied to its own output. Once is enough.",
        {"norm_place": ("pre", "twice")},
    ),
    WiringBug(
        "norm on the residual stream, at the attention",
        "x itself was replaced by norm_1(x) before the attention was added. Only the branch reads "
        "norm_1(x); the residual stream keeps x.",
        {"norm_place": ("on the residual stream", "pre")},
    ),
    WiringBug(
        "norm on the residual stream, at the feed-forward",
        "x itself was replaced by norm_2(x) before the feed-forward was added. Only the branch "
        "reads norm_2(x); the residual stream keeps x.",
        {"norm_place": ("pre", "on the residual stream")},
    ),
    WiringBug(
        "norm after the attention",
        "This is x + norm_1(attention(x)), while the feed-forward has its norm before it. Pre-norm "
        "is x + attention(norm_1(x)).",
        {"norm_place": ("after the branch", "pre")},
    ),
    WiringBug(
        "norm after the feed-forward",
        "This is x + norm_2(feed_forward(x)), while the attention has its norm before it. Pre-norm "
        "is x + feed_forward(norm_2(x)).",
        {"norm_place": ("pre", "after the branch")},
    ),
    WiringBug(
        "pre-norm and post-norm mixed",
        "The attention has its norm before it, the feed-forward after the sum. Use one of both.",
        {"norm_place": ("pre", "post")},
    ),
    WiringBug(
        "pre-norm and post-norm mixed",
        "The attention has its norm after the sum, the feed-forward before it. Use one of both.",
        {"norm_place": ("post", "pre")},
    ),
    WiringBug(
        "feed-forward in place of the attention",
        "The feed-forward is called twice, the attention never: no token attends to another.",
        {"branches": (1, 1)},
    ),
    WiringBug(
        "attention in place of the feed-forward",
        "The attention is called twice, the feed-forward never.",
        {"branches": (0, 0)},
    ),
)


def wiring_bugs_and_pairs() -> Iterator[tuple[tuple[WiringBug, ...], dict[str, Any]]]:
    """Each wiring bug, then two at a time, with the arguments of `block_output` for them.

    A bug that says nothing about the norm's place is there twice, pre-norm and post-norm.
    """
    for count in (1, 2):
        for bugs in itertools.combinations(WIRING_BUGS + MODULE_WIRING_BUGS, count):
            changed = [argument for bug in bugs for argument in bug.changed]
            if len(changed) > len(set(changed)):  # the two exclude each other
                continue
            for norm_place in ("pre",) if "norm_place" in changed else ("pre", "post"):
                arguments: dict[str, Any] = {"norm_place": norm_place}
                for bug in bugs:
                    arguments |= bug.changed
                yield bugs, arguments
