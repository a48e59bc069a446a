"""Known bugs of a block: its four parts are right, and put together in a wrong way.

`block_output` puts the parts together as its arguments say. Each bug, told in ``block.md``, is a
call with other arguments.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor

from attention_base.known import Known, PageError, read

# How a branch and its norm are put together, as a function of what is added to (the residual
# stream), what the branch reads, the branch and its norm.
NORM_PLACES: dict[str, Callable[..., Tensor]] = {
    "pre": lambda stream, x, branch, norm: stream + branch(norm(x)),
    "post": lambda stream, x, branch, norm: norm(stream + branch(x)),
    "on the residual stream": lambda stream, x, branch, norm: norm(stream) + branch(norm(x)),
    "after the branch": lambda stream, x, branch, norm: stream + norm(branch(x)),
    "twice": lambda stream, x, branch, norm: stream + branch(norm(norm(x))),
    "around the branch": lambda stream, x, branch, norm: stream + norm(branch(norm(x))),
    "around the sum": lambda stream, x, branch, norm: norm(stream + branch(norm(x))),
    "x added before": lambda stream, x, branch, norm: branch(x + norm(x)),
    "minus": lambda stream, x, branch, norm: stream - branch(norm(x)),
    "times": lambda stream, x, branch, norm: stream * branch(norm(x)),
    "twice the branch": lambda stream, x, branch, norm: 2 * branch(norm(x)),
    "branch twice": lambda stream, x, branch, norm: stream + branch(branch(norm(x))),
    "step twice": lambda stream, x, branch, norm: (z := stream + branch(norm(x))) + branch(norm(z)),
    "ReLU of the branch": lambda stream, x, branch, norm: stream + branch(norm(x)).relu(),
    "ReLU of the sum": lambda stream, x, branch, norm: (stream + branch(norm(x))).relu(),
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
    reads: str = "sum",
    adds_to: str = "sum",
) -> Tensor:
    """The output of a block that is put together from its four parts, all (B, T, C) -> (B, T, C).

    - norm_place: "pre": x + branch(norm(x)); "post": norm(x + branch(x)); or another of
      `NORM_PLACES`. Two of them, where the attention and the feed-forward differ.
    - order: which branches there are, 0 = attention and 1 = feed-forward, in this order.
    - residual: how often x is added to the attention, and to the feed-forward.
    - norms: which norm the attention has, and which the feed-forward, 0 = norm_1; None for no norm.
    - branches: which part stands in the place of the attention, and which of the feed-forward.
    - share: what each sum is multiplied by.
    - reads, adds_to: what the second branch reads, and what it is added to: "sum", what the first
      step made; "x", the input of the block; "branch", what the first branch made, without x;
      "both", the sum and x once more.
    """
    places = (norm_place, norm_place) if isinstance(norm_place, str) else norm_place
    seen = {"x": x, "sum": x}
    for step, i in enumerate(order):
        branch, norm = (attention, feed_forward)[branches[i]], lambda z: z
        if norms[i] is not None:
            norm = (norm_1, norm_2)[norms[i]]
        place, read = NORM_PLACES[places[i]], seen[reads if step else "x"]
        made = share * place(residual[i] * seen[adds_to if step else "x"], read, branch, norm)
        seen = {"x": x, "sum": made, "both": made + x}
        if reads == "branch":
            seen["branch"] = place(0 * x, read, branch, norm)
    return made


def _at_both_branches(known: Known) -> Iterator[Known]:
    """A bug of one of the branches: at the attention, then at the feed-forward."""
    place = known.settings["norm_place"]
    for branch, part, norm, places in (
        ("attention", "attention", "norm_1", (place, "pre")),
        ("feed-forward", "feed_forward", "norm_2", ("pre", place)),
    ):
        words = {"branch": branch, "part": part, "norm": norm, "call": f"{part}({norm}(x))"}
        name, message = (text.format(**words) for text in (known.name, known.message))
        yield replace(known, name=name, message=message, settings={"norm_place": places})


*_WHOLE, _AT_A_BRANCH = read(Path(__file__).with_name("block.md"))
WIRING_BUGS = [known for section in _WHOLE for known in section.entries]
WIRING_BUGS += itertools.chain.from_iterable(map(_at_both_branches, _AT_A_BRANCH.entries))
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
