"""What is known of SmolLM2 for notebook 15: on many nouns, frames and texts, with its controls.

Blocks and heads count from 0. It needs `make real`, and takes half an hour on one core.

Run: python benchmarks/real.py [--quick]
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from attention_base.same import one_thread
from benchmarks.training import record
from helpers.attention import MultiHeadAttention, modules
from helpers.circuits import ablate, induction_score, patch
from helpers.real import study
from helpers.real.study import ANIMALS, FOODS

FRAMES = [
    "the {} was warm so it",
    "the {} was cold so it",
    "we saw that the {} was old and it",
    "my sister likes the {} because it",
    "there was a {} in the kitchen and it",
    "the {} near the door was small but it",
    "yesterday they found the {} and said that it",
    "the {} that my uncle had bought was so good that it",
    "in the morning the {} stood on the table until it",
    "nobody wanted the big {} since it",
    "the {} was there for a very long time before it",
    "she took the {} home, where it",
]
K = (1, 2, 4, 8, 16, 32, 64, 128, 270)
T = 257  # tokens of a passage
Heads = Sequence[tuple[int, int]]


class Asked:
    """The model, and what the measurements below share."""

    def __init__(self) -> None:
        self.model, self.pieces = study.the_model()
        self.n_layer, self.n_head = self.model.sizes["n_layer"], self.model.sizes["n_head"]
        self.places = list(itertools.product(range(self.n_layer), range(self.n_head)))
        passages = study.passages()
        self.texts = [self.pieces.encode(text)[:, :T] for text in passages]
        path = record.RESULTS / "real.json"
        self.stored = json.loads(path.read_text())["runs"] if path.exists() else {}

    def order(self) -> list[tuple[int, int]]:
        """The heads that carry the noun, (block, head), the strongest first."""
        return [tuple(place) for place in self.stored["heads"]["order"]]

    def ids(self, texts: Sequence[str]) -> Tensor:
        """Texts of one length -> (B, T)."""
        return torch.cat([self.pieces.encode(text) for text in texts])

    def odds(self, ids: Tensor) -> Tensor:
        """Ids (B, T) -> log-odds (B,)."""
        return study.odds_of(self.model, self.pieces, ids)

    def maps(self, ids: Tensor) -> Tensor:
        """(n_layer, B, n_head, T, T)."""
        x, found = self.model.embedding(ids), []
        for block in self.model.blocks:
            found.append(block.attention(block.norm_1(x), return_weights=True)[1])
            x = block(x)
        return torch.stack(found)

    def losses(self, ids: Tensor, **options: Any) -> Tensor:
        """(T - 1,), one for each token but the first."""
        return study.losses_of(self.model, ids, **options)

    @contextmanager
    def put(self, weights: Tensor, layers: Sequence[int] | None = None) -> Iterator[None]:
        """Weights (n_layer, B, n_head, T, T) in the place of the model's own."""
        with ExitStack() as stack:
            for n in range(self.n_layer) if layers is None else layers:
                stack.enter_context(patch(self.model.blocks[n], 0, weights[n]))
            yield

    @contextmanager
    def outputs(self, change: Callable[[int, Tensor], Tensor]) -> Iterator[None]:
        """change(layer, z) in the place of what the heads of a layer hand to proj, (B, T, C)."""
        hooks = [
            block.attention.proj.register_forward_pre_hook(
                lambda proj, given, n=n: (change(n, given[0]),)
            )
            for n, block in enumerate(self.model.blocks)
        ]
        with removed(hooks):
            yield

    def values(self, ids: Tensor) -> list[Tensor]:
        """What the layers of values give, (B, T, n_kv_head * head_size) in each block."""
        found: list[Tensor] = []
        with self.changed_values(lambda n, v: found.append(v) or v):
            self.model(ids)
        return found

    @contextmanager
    def changed_values(self, change: Callable[[int, Tensor], Tensor]) -> Iterator[None]:
        """change(layer, v) in the place of what a layer of values gives."""
        hooks = [
            block.attention.value.register_forward_hook(
                lambda layer, given, out, n=n: change(n, out)
            )
            for n, block in enumerate(self.model.blocks)
        ]
        with removed(hooks):
            yield

    def head_outputs(self, ids: Tensor) -> Tensor:
        """(n_layer, B, C): what the heads hand on at the last token."""
        found: list[Tensor] = []
        with self.outputs(lambda n, z: found.append(z[:, -1]) or z):
            self.model(ids)
        return torch.stack(found)


@contextmanager
def removed(hooks: Sequence[Any]) -> Iterator[None]:
    """Whatever happens, the hooks are gone afterwards."""
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


# ---------------------------------------------------------------- nouns and frames


def pairs_of(frame: str, n: int = 8) -> tuple[list[str], list[str]]:
    return [frame.format(x) for x in ANIMALS[:n]], [frame.format(x) for x in FOODS[:n]]


def nouns(asked: Asked) -> dict[str, Any]:
    """The log-odds of 16 animals and 16 foods, and the share of pairs in order, by frame."""
    found = {}
    for frame in FRAMES:
        animals, foods = (asked.odds(asked.ids(one)) for one in pairs_of(frame, 16))
        order = (animals[:, None] > foods).float().mean().item()
        found[frame] = {"animals": rounded(animals), "foods": rounded(foods), "in order": order}
    return found


def places(asked: Asked) -> dict[str, Any]:
    """By frame: the share of the effect that a vector of the food's run moves, by block."""
    at_noun, at_it = [], []
    for frame in FRAMES:
        ids, others = (asked.ids(one) for one in pairs_of(frame))
        noun = int((ids != others).any(dim=0).nonzero()[0])
        own, other = (study.streams(asked.model, one) for one in (ids, others))
        odds, low = asked.odds(ids).mean(), asked.odds(others).mean()
        for into, t in ((at_noun, noun), (at_it, -1)):
            line = []
            for n in range(asked.n_layer + 1):
                x = own[n].clone()
                x[:, t] = other[n][:, t]
                changed = study.go_on(asked.model, asked.pieces, x, n).mean()
                line.append(((odds - changed) / (odds - low)).item())
            into.append(line)
    lens = []
    for frame in FRAMES:
        own, other = (study.streams(asked.model, asked.ids(one)) for one in pairs_of(frame))
        read = [study.go_on(asked.model, asked.pieces, x, asked.n_layer).mean() for x in own]
        low = [study.go_on(asked.model, asked.pieces, x, asked.n_layer).mean() for x in other]
        lens.append([(a - b).item() for a, b in zip(read, low, strict=True)])
    return {"at the noun": rounded(at_noun), "at it": rounded(at_it), "lens": rounded(lens)}


def heads(asked: Asked) -> dict[str, Any]:
    """Effects of each head at the last token, by frame; and of the best k, on the other frames."""
    effects = torch.zeros(len(FRAMES), asked.n_layer, asked.n_head)
    d = asked.model.sizes["C"] // asked.n_head
    for f, frame in enumerate(FRAMES):
        ids, odds, low, z = run_of(asked, frame)
        own = study.streams(asked.model, ids)
        for n, h in asked.places:
            with asked.outputs(with_heads([(n, h)], z, d)):
                changed = study.go_on(asked.model, asked.pieces, own[n], n).mean()
            effects[f, n, h] = (odds - changed) / (odds - low)
    generator = torch.Generator().manual_seed(0)
    shares: dict[str, list] = {"best": [], "random": []}
    for k in K:
        for name, into in shares.items():
            line = []
            for half in (0, 1):
                chosen = effects[half::2].mean(dim=0).flatten().argsort(descending=True)
                for _repeat in range(1 if name == "best" else 3):
                    if name == "random":
                        chosen = torch.randperm(len(asked.places), generator=generator)
                    some = [asked.places[i] for i in chosen[:k].tolist()]
                    line += [share_of(asked, some, frame) for frame in FRAMES[1 - half :: 2]]
            into.append(line)
    best = effects.mean(dim=0).flatten().argsort(descending=True)
    return {
        "effects": rounded(effects),
        "k": list(K),
        "best": rounded(shares["best"]),
        "random": rounded(shares["random"]),
        "order": [asked.places[i] for i in best.tolist()],
    }


def with_heads(some: Heads, z_other: Tensor, d: int) -> Callable[[int, Tensor], Tensor]:
    """Some heads' outputs at the last token from another run, z_other (n_layer, B, C)."""

    def change(n: int, z: Tensor) -> Tensor:
        z = z.clone()
        for layer, h in some:
            if layer == n:
                z[:, -1, h * d : (h + 1) * d] = z_other[n, :, h * d : (h + 1) * d]
        return z

    return change


def share_of(asked: Asked, some: Heads, frame: str) -> float:
    """The share of the effect that some heads move together."""
    ids, odds, low, z_other = run_of(asked, frame)
    with asked.outputs(with_heads(some, z_other, asked.model.sizes["C"] // asked.n_head)):
        changed = asked.odds(ids).mean()
    return ((odds - changed) / (odds - low)).item()


@functools.cache
def run_of(asked: Asked, frame: str) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Ids of the animals, mean log-odds of animals and foods, what heads give on the foods."""
    ids, others = (asked.ids(one) for one in pairs_of(frame))
    return ids, asked.odds(ids).mean(), asked.odds(others).mean(), asked.head_outputs(others)


def cut(asked: Asked) -> dict[str, Any]:
    """By frame: animals minus foods, as it is, and where “it” does not see the noun in some heads.

    The 16 are the best of the other half of the frames; the 16 others attend most to the noun.
    """
    effects = torch.tensor(asked.stored["heads"]["effects"])  # (frames, n_layer, n_head)
    found: dict[str, list] = {"as it is": [], "weight": []}
    for f, frame in enumerate(FRAMES):
        ids, others = (asked.ids(one) for one in pairs_of(frame))
        noun = int((ids != others).any(dim=0).nonzero()[0])
        maps = [asked.maps(one) for one in (ids, others)]
        look = torch.stack(maps)[..., -1, noun].mean(dim=(0, 2))  # (n_layer, n_head)
        best = largest(effects[1 - f % 2 :: 2].mean(dim=0), [])
        blind = {
            "16 others": largest(look, best),
            "the 16": best,
            "all but the 16": [place for place in asked.places if place not in best],
            "all": asked.places,
        }
        found["as it is"].append((asked.odds(ids) - asked.odds(others)).mean().item())
        found["weight"].append([look[place].item() for place in asked.order()[:16]])
        for name, some in blind.items():
            odds = []
            for one, own in zip((ids, others), maps, strict=True):
                changed = own.clone()
                for n, h in some:
                    changed[n, :, h, -1, noun] = 0
                    changed[n, :, h, -1] /= changed[n, :, h, -1].sum(dim=-1, keepdim=True)
                with asked.put(changed):
                    odds.append(asked.odds(one).mean())
            found.setdefault(name, []).append((odds[0] - odds[1]).item())
    return {name: rounded(line) for name, line in found.items()}


def largest(numbers: Tensor, without: Heads, n: int = 16) -> list[tuple[int, int]]:
    """The heads with the largest numbers (n_layer, n_head), some left out."""
    order = numbers.flatten().argsort(descending=True).tolist()
    places = [divmod(i, numbers.shape[1]) for i in order]
    return [place for place in places if place not in without][:n]


# ---------------------------------------------------------------- maps


def swapped(asked: Asked) -> dict[str, Any]:
    """The share of the effect that the food's maps, or its values, move.

    Of all 256 pairs, and of 12 frames with 4 pairs each.
    """
    animals, foods = (asked.ids(one) for one in pairs_of(FRAMES[0], 16))
    odds, low = asked.odds(animals), asked.odds(foods)
    effect = (odds.mean() - low.mean()).item()
    shares = {name: torch.zeros(16, 16) for name in ("maps", "values")}
    for j in range(16):
        for name, changed in with_the_other(asked, animals, foods[[j]].expand(16, -1)).items():
            shares[name][:, j] = (odds - changed) / effect
    by_frame: dict[str, list] = {name: [] for name in shares}
    for frame in FRAMES:
        ids, others = (asked.ids(one) for one in pairs_of(frame, 4))
        odds, low = asked.odds(ids).mean(), asked.odds(others).mean()
        for name, changed in with_the_other(asked, ids, others).items():
            by_frame[name].append(((odds - changed.mean()) / (odds - low)).item())
    return {
        "of the mean effect": {name: rounded(found) for name, found in shares.items()},
        "by frame": {name: rounded(found) for name, found in by_frame.items()},
    }


def with_the_other(asked: Asked, ids: Tensor, others: Tensor) -> dict[str, Tensor]:
    """Log-odds (B,) with the maps of the other text and own values, and the other way round."""
    found = {}
    with asked.put(asked.maps(others)):
        found["maps"] = asked.odds(ids)
    values = asked.values(others)
    with asked.put(asked.maps(ids)), asked.changed_values(lambda n, v: values[n]):
        found["values"] = asked.odds(ids)
    return found


def wanted(asked: Asked) -> dict[str, Any]:
    """Animals minus foods with the wanted row, all weight on the noun, in some heads: 32 nouns.

    In the best k heads, in ten draws of 16 random ones, and in all heads of some blocks.
    """
    order, generator = asked.order(), torch.Generator().manual_seed(0)
    ids = [asked.ids(one) for one in pairs_of(FRAMES[0], 16)]
    maps = [asked.maps(one) for one in ids]

    def difference(some: Heads) -> float:
        means = []
        for one, own in zip(ids, maps, strict=True):
            changed = own.clone()
            for n, h in some:
                changed[n, :, h, -1] = torch.eye(one.shape[1])[1]
            with asked.put(changed):
                means.append(asked.odds(one).mean())
        return (means[0] - means[1]).item()

    draws = [torch.randperm(len(order), generator=generator)[:16].tolist() for _ in range(10)]
    return {
        "best": {str(k): difference(order[:k]) for k in (0, *K)},
        "random 16": rounded([difference([order[i] for i in draw]) for draw in draws]),
        "blocks 0 to 11": difference([place for place in order if place[0] < 12]),
        "blocks 12 to 29": difference([place for place in order if place[0] >= 12]),
    }


def two_nouns(asked: Asked) -> dict[str, Any]:
    """Two nouns in a text: the weight of some heads on one of them is moved to the other one."""
    order = asked.order()
    frames = ("the {} was near the {} so it", "the {} stood by the {} because it")
    found: dict[str, list] = {
        "as it is": [],
        "animal": [],
        "food": [],
        "other heads: animal": [],
        "other heads: food": [],
    }
    for frame, (a, f) in itertools.product(frames, zip(ANIMALS[:8], FOODS[:8], strict=True)):
        for first in (True, False):
            ids = asked.ids([frame.format(a, f) if first else frame.format(f, a)])
            animal, food = (1, 5) if first else (5, 1)
            own = asked.maps(ids)
            others = largest(own[:, 0, :, -1, [animal, food]].sum(dim=-1), order[:16])
            found["as it is"].append(asked.odds(ids).item())
            for prefix, some in (("", order[:16]), ("other heads: ", others)):
                for name, source, target in (("animal", food, animal), ("food", animal, food)):
                    weights = own.clone()
                    for n, h in some:
                        weights[n, 0, h, -1, target] += weights[n, 0, h, -1, source]
                        weights[n, 0, h, -1, source] = 0
                    with asked.put(weights):
                        found[prefix + name].append(asked.odds(ids).item())
    return {name: rounded(values) for name, values in found.items()}


# ---------------------------------------------------------------- the other heads


def sinks(asked: Asked) -> dict[str, Any]:
    """By passage: losses from token 32 on, the first token hidden or outside of a window."""
    n = T - 1
    causal = torch.ones(n, n, dtype=torch.bool).tril()
    never, later, other = causal.clone(), causal.clone(), causal.clone()
    never[1:, 0] = later[32:, 0] = other[32:, 5] = False
    q, k = torch.arange(n)[:, None], torch.arange(n)
    masks = {"as it is": causal, "first hidden": never, "hidden from 32 on": later}
    masks |= {"token 5 hidden from 32 on": other}
    for window in (16, 32, 64):
        masks[f"window {window}"] = causal & (k > q - window)
        masks[f"window {window} and first"] = causal & ((k > q - window) | (k < 1))
    found = {
        name: [asked.losses(ids, mask=mask) for ids in asked.texts] for name, mask in masks.items()
    }
    with asked.changed_values(lambda n, v: torch.cat([0 * v[:, :1], v[:, 1:]], dim=1)):
        found["value of the first is 0"] = [asked.losses(ids) for ids in asked.texts]
    share = torch.stack(
        [asked.maps(ids[:, :160])[:, 0, :, 32:, 0].mean(dim=-1) for ids in asked.texts]
    )
    seconds = {}  # what lies on the second token if the first is hidden
    for name, mask in (("first hidden", never), ("hidden from 32 on", later)):
        with attribute(modules, "causal_mask", lambda *sizes, mask=mask: mask[:159, :159]):
            weights = [asked.maps(ids[:, :159])[:, 0, :, 32:, 1] for ids in asked.texts]
        seconds[name] = rounded(torch.stack([one.mean() for one in weights]))
    lengths = []
    for ids in asked.texts:
        norms = study.streams(asked.model, ids)[13][0].norm(dim=-1)
        lengths.append([norms[0].item(), norms[1:].mean().item()])
    return {
        "loss": {name: [one[32:].mean().item() for one in lines] for name, lines in found.items()},
        "by position": {
            name: rounded(torch.stack(found[name]).mean(dim=0))
            for name in ("as it is", "window 64", "window 64 and first")
        },
        "share of the first token": rounded(share.mean(dim=0)),
        "by passage": rounded(share.mean(dim=(1, 2))),
        "share of the second token": seconds,
        "lengths before block 13": rounded(lengths),
    }


def induction(asked: Asked) -> dict[str, Any]:
    """60 random words, twice: scores of the heads, and what is right without the best 8."""
    generator = torch.Generator().manual_seed(0)
    words = torch.tensor(
        [i for i, name in enumerate(asked.pieces.names) if name[:1] == "Ġ" and name[1:].isalpha()]
    )
    scores, right = [], []
    texts = [
        words[torch.randint(len(words), (1, 60), generator=generator)].repeat(1, 2)
        for _ in range(6)
    ]
    for ids in texts:
        scores.append(induction_score(asked.maps(ids)[:, 0], 60))
    mean = torch.stack(scores).mean(dim=0)
    best = [asked.places[i] for i in mean.flatten().argsort(descending=True)[:8].tolist()]
    blocks = {n for n, _ in best}  # a fair control: other heads of the same blocks
    others = [place for place in asked.places if place[0] in blocks and place not in best]
    for ids in texts:
        picked = torch.randperm(len(others), generator=generator)[:8].tolist()
        line = []
        for some in ([], best, [others[i] for i in picked]):
            with ExitStack() as stack:
                for n in {n for n, _ in some}:
                    hs = [h for m, h in some if m == n]
                    stack.enter_context(ablate(asked.model.blocks[n], 0, hs))
                logits = asked.model(ids)
            line.append((logits[0, 60:-1].argmax(dim=-1) == ids[0, 61:]).float().mean().item())
        right.append(line)
    return {
        "scores": rounded(mean),
        "best": best,
        "right: as it is, without the 8, without 8 others": rounded(right),
    }


# ---------------------------------------------------------------- bugs


def bugs(asked: Asked) -> dict[str, Any]:
    """The model's losses and texts with a bug in its attention."""
    found = {}
    for name, wrong in BUGS.items():
        with wrong(asked):
            losses_ = [asked.losses(ids).mean().item() for ids in asked.texts]
            cat, soup = (
                asked.odds(asked.ids([f"the {x} was warm so it"])).item() for x in ("cat", "soup")
            )
            texts = [
                study.written(asked.model, asked.pieces, text, 16, cached=False)
                for text in ("The cat was warm, so it", "The capital of France is")
            ]
        found[name] = {
            "losses": rounded(losses_),
            "cat": round(cat, 2),
            "soup": round(soup, 2),
            "texts": texts,
        }
    return found


@contextmanager
def attribute(owner: Any, name: str, value: Any) -> Iterator[None]:
    old = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, old)


@contextmanager
def halves(asked: Asked) -> Iterator[None]:
    right = modules.positions.rotary

    def wrong(x: Tensor, *args: Any, **more: Any) -> Tensor:  # pairs i and i + d / 2
        d = x.shape[-1] // 2
        paired = torch.stack([x[..., :d], x[..., d:]], dim=-1).flatten(-2)
        turned = right(paired, *args, **more)
        return torch.cat([turned[..., 0::2], turned[..., 1::2]], dim=-1)

    with attribute(modules.positions, "rotary", wrong):
        yield


def tiled(self: MultiHeadAttention, z: Tensor) -> Tensor:
    return z.repeat(1, self.n_shared, 1, 1)


def not_causal(asked: Asked) -> Any:
    return attribute(
        modules,
        "causal_mask",
        lambda *sizes: torch.ones(sizes if len(sizes) > 1 else sizes * 2, dtype=torch.bool),
    )


@contextmanager
def no_scale(asked: Asked) -> Iterator[None]:
    for block in asked.model.blocks:
        block.attention.query.weight.data *= block.attention.head_size**0.5
    try:
        yield
    finally:
        for block in asked.model.blocks:
            block.attention.query.weight.data /= block.attention.head_size**0.5


@contextmanager
def no_queries(asked: Asked) -> Iterator[None]:  # equal scores: the mean of notebook 01
    own = [block.attention.query.weight.data.clone() for block in asked.model.blocks]
    for block in asked.model.blocks:
        block.attention.query.weight.data.zero_()
    try:
        yield
    finally:
        for block, weight in zip(asked.model.blocks, own, strict=True):
            block.attention.query.weight.data.copy_(weight)


@contextmanager
def each_layer(asked: Asked, **values: Any) -> Iterator[None]:
    with ExitStack() as stack:
        for block in asked.model.blocks:
            for name, value in values.items():
                stack.enter_context(attribute(block.attention, name, value))
        yield


BUGS: dict[str, Callable[[Asked], Any]] = {
    "none": lambda asked: ExitStack(),
    "no rotary": lambda asked: each_layer(asked, rotary=False),
    "base 10,000": lambda asked: each_layer(asked, rotary_base=10_000.0),
    "halves for pairs": halves,
    "groups tiled": lambda asked: attribute(MultiHeadAttention, "_for_each_head", tiled),
    "no scale": no_scale,
    "no mask": not_causal,
    "all queries 0": no_queries,
}


def rounded(values: Any) -> Any:
    """Four decimals, in lists."""
    if isinstance(values, Tensor):
        values = values.tolist()
    return [rounded(one) for one in values] if isinstance(values, list) else round(values, 4)


PARTS: dict[str, Callable[[Asked], Any]] = {
    "nouns": nouns,
    "bugs": bugs,
    "places": places,
    "heads": heads,
    "cut": cut,
    "swapped": swapped,
    "wanted": wanted,
    "two nouns": two_nouns,
    "sinks": sinks,
    "induction": induction,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one part, nothing stored")
    parser.add_argument("parts", nargs="*", help=f"some of: {', '.join(PARTS)}; the others stay")
    given = parser.parse_args()
    if unknown := {*given.parts} - {*PARTS}:
        parser.error(f"there is no part {min(unknown)!r}")
    with torch.no_grad(), one_thread():
        asked = Asked()
        for name in ["nouns"] if given.quick else given.parts or PARTS:
            found = PARTS[name](asked)
            if not given.quick:  # part by part, so that nothing is lost
                asked.stored[name] = found
                record.write("real", record.conditions() | {"runs": asked.stored})
            print(name, "done", flush=True)


if __name__ == "__main__":
    main()
