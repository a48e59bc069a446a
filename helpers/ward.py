"""Wrong attentions, each made of one right program, and the questions that find them.

`Attention` is the right program. ``ward.md`` lists the changes that make the wrong ones: eight that
libraries had (or a lecture), and a few more. `QUESTIONS` holds the questions that a module can be
asked, `ask` asks them. In a trained model, `with_attention` puts one in the place of another.
"""

import copy
import inspect
import textwrap
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path

import torch
from torch import Tensor, nn

from attention_base.arguments import typed
from attention_base.known import Known, changed_text, execute, read
from attention_base.masks import refuse_bad_sizes
from attention_base.same import ATOL, same_conditions
from helpers.attention import causal_mask
from helpers.attention.checks import (
    refuse_bad_ids,
    refuse_bad_input,
    refuse_odd_rotary,
    refuse_uneven_heads,
)
from helpers.gpt import TinyGPT, next_token_probabilities

# ---------------------------------------------------------------- the right program


class Attention(nn.Module):
    """Causal attention as models ship it: a norm, grouped heads, rotary positions, kept keys.

    Grouped heads are from Ainslie et al. (2023), "GQA", https://arxiv.org/abs/2305.13245, rotary
    positions from Su et al. (2021), https://arxiv.org/abs/2104.09864.

    Parameters
    ----------
    C
        Channels of a token; must be divisible by n_head.
    n_head
        Heads of queries.
    n_kv_head
        Heads of keys and values; n_head must be divisible by it.

    Raises
    ------
    ValueError
        When a size is not a whole number of at least 1, or the sizes do not fit each other.

    Examples
    --------
    >>> attention, cache = Attention(16, 4, 2), []
    >>> x = torch.randn(3, 8, 16)
    >>> first, second = attention(x[:, :5], cache=cache), attention(x[:, 5:], start=5, cache=cache)
    >>> torch.allclose(torch.cat([first, second], dim=1), attention(x), atol=1e-5)
    True
    """

    def __init__(self, C, n_head, n_kv_head):
        super().__init__()
        _refuse_bad_heads(C, n_head, n_kv_head)
        self.n_head, self.n_kv_head, self.head_size = n_head, n_kv_head, C // n_head
        self.norm = nn.LayerNorm(C)
        self.query = nn.Linear(C, C, bias=False)
        self.key = nn.Linear(C, n_kv_head * self.head_size, bias=False)
        self.value = nn.Linear(C, n_kv_head * self.head_size, bias=False)
        self.proj = nn.Linear(C, C)

    def forward(self, x, start=0, cache=None, need_weights=False):
        """(B, T, C) -> (B, T, C), and the weights (B, n_head, T, T_k) if need_weights.

        Parameters
        ----------
        x
            (B, T, C), tokens at the positions start, start + 1, …
        start
            The position of the first token of x: how many tokens were kept.
        cache
            A list of the keys and values of earlier calls, to which this call appends its own.
            Queries attend to all of them, T_k in all. None keeps nothing, so that T_k is T.
        need_weights
            Whether to return the weights as well.
        """
        refuse_bad_input(x, None, None, self.query)
        B, T, _ = x.shape
        x = self.norm(x)
        q = self.query(x).view(B, T, self.n_head, -1).transpose(1, 2)  # (B, n_head, T, d)
        k = self.key(x).view(B, T, self.n_kv_head, -1).transpose(1, 2)  # (B, n_kv_head, T, d)
        v = self.value(x).view(B, T, self.n_kv_head, -1).transpose(1, 2)
        q, k = rotate(q, start), rotate(k, start)
        if cache is not None:
            cache.append((k, v))
            k, v = (torch.cat(z, dim=2) for z in zip(*cache, strict=True))  # (B, n_kv_head, T_k, d)
        group = self.n_head // self.n_kv_head  # so many heads of queries share a head of keys
        k, v = (z.repeat_interleave(group, dim=1) for z in (k, v))  # (B, n_head, T_k, d)
        scores = q @ k.mT / self.head_size**0.5  # (B, n_head, T, T_k)
        future = ~causal_mask(T, k.shape[2])
        scores = scores.masked_fill(future, -torch.inf)
        weights = torch.softmax(scores, dim=-1)
        out = weights @ v  # (B, n_head, T, d)
        out = self.proj(out.transpose(1, 2).flatten(2))  # (B, T, C)
        return (out, weights) if need_weights else out


def rotate(z, start):
    """(B, heads, T, d) -> the same, each pair of channels turned by an angle for its position."""
    T, d = z.shape[-2:]
    angles = (start + torch.arange(T))[:, None] * 10_000 ** (-torch.arange(0, d, 2) / d)
    angles = angles.repeat_interleave(2, dim=-1)  # (T, d)
    turned = torch.stack([-z[..., 1::2], z[..., 0::2]], dim=-1).flatten(-2)
    return z * angles.cos() + turned * angles.sin()


def _refuse_bad_heads(C: int, n_head: int, n_kv_head: int) -> None:
    refuse_bad_sizes(C=C, n_head=n_head, n_kv_head=n_kv_head)
    refuse_uneven_heads(C, n_head)
    refuse_odd_rotary(True, C // n_head)
    if n_head % n_kv_head:
        fitting = ", ".join(str(n) for n in range(1, n_head + 1) if n_head % n == 0)
        raise ValueError(
            f"n_head must be a multiple of n_kv_head, so that each head of keys serves as many "
            f"heads of queries; got n_head = {n_head}, n_kv_head = {n_kv_head}. Use {fitting}."
        )


# ---------------------------------------------------------------- the wrong ones

_PROGRAM = inspect.getsource(Attention) + "\n\n" + inspect.getsource(rotate)
EIGHT: dict[str, Known]
OTHERS: dict[str, Known]
EIGHT, OTHERS = (
    {known.name: known for known in section.entries}
    for section in read(Path(__file__).with_name("ward.md"))
)


@typed
@cache
def broken(name: str | None) -> type[nn.Module]:
    """The class `Attention` with a bug in its program, or without one where the name is None.

    Raises
    ------
    ValueError
        When no bug has this name.
    """
    if name is None:
        return Attention
    where = f"{_known(name).where}, “{name}”"
    # Under another __name__, inspect does not take the source of the right class for its own.
    defined = {**globals(), "__name__": where}
    execute(_changed(name), where, defined, defined)
    return defined["Attention"]


@typed
def around(attend: Callable[[Tensor, Tensor, Tensor], Tensor]) -> type[nn.Module]:
    """The class `Attention` with a function of yours in the place of its scores, mask and softmax.

    Parameters
    ----------
    attend
        Takes q (B, n_head, T, d) and k, v (B, n_head, T_k, d), and returns the outputs, as q.

    Examples
    --------
    >>> ask(around(lambda q, k, v: v[:, :, -q.shape[2] :]), ["prefix", "reach"])
    {'prefix': 0.0, 'reach': 28.0}
    """
    program = _changed(None)
    steps = program[program.index("scores = q @") : program.index("out = self.proj")]
    own = {**globals(), "__name__": "around", "attend": attend}
    called = program.replace(steps, "out, weights = attend(q, k, v), None\n        ")
    execute(called, "around", own, own)
    return own["Attention"]


@typed
def wrong_lines(name: str) -> str:
    """The lines of a bug that the right program does not have.

    Raises
    ------
    ValueError
        When no bug has this name.
    """
    lines = _changed(name).splitlines()
    return textwrap.dedent("\n".join(lines[i - 1] for i in sorted(_wrong_lines(name))))


def _known(name: str) -> Known:
    ward = EIGHT | OTHERS
    if name not in ward:
        raise ValueError(f"No bug is called {name!r}. The names are: {', '.join(map(repr, ward))}.")
    return ward[name]


def _changed(name: str | None) -> str:
    """The source of `Attention` and `rotate` with a bug, without empty lines."""
    known = _known(name) if name is not None else Known("right")
    return changed_text(_PROGRAM, known.changes, f"{known.where}, “{known.name}”", "Attention")


def _wrong_lines(name: str | None) -> set[int]:
    """The numbers, from 1, of the lines of a bug that the right program does not have."""
    right = set(_changed(None).splitlines())
    return {i for i, line in enumerate(_changed(name).splitlines(), 1) if line not in right}


# ---------------------------------------------------------------- the questions

C, N_HEAD, N_KV_HEAD = 16, 4, 2
QUESTIONS: dict[str, Callable[[nn.Module], float]] = {}


def _question(name: str) -> Callable[[Callable], Callable]:
    """Put a function (module, x) -> float into QUESTIONS, as what `ask` describes."""

    def register(largest: Callable[[nn.Module, Tensor], float]) -> Callable[[nn.Module], float]:
        def answer(module: nn.Module) -> float:
            with same_conditions(seed=1), torch.no_grad():
                x = torch.randn(3, 8, C)
                try:
                    found = largest(copy.deepcopy(module).eval(), x)
                except Exception:  # whatever it raises, it gives no right answer
                    return float("inf")
            if found <= ATOL:
                return 0.0
            return found if found < float("inf") else float("inf")  # nan, too

        answer.__doc__ = largest.__doc__  # what a right one does
        QUESTIONS[name] = answer
        return answer

    return register


def _largest(difference: Tensor) -> float:
    return difference.abs().max().item()


def _prefix(module: nn.Module, x: Tensor) -> float:
    """How far the last output of a text lies from the output there in the whole text."""
    whole = module(x)
    ends = [module(x[:, : t + 1])[:, t] - whole[:, t] for t in range(x.shape[1] - 1)]
    return _largest(torch.stack(ends))


@_question("shape")
def _shape(module: nn.Module, x: Tensor) -> float:
    """The output has the shape of x."""
    return 0.0 if module(x).shape == x.shape else float("inf")


@_question("rows sum to 1")
def _rows(module: nn.Module, x: Tensor) -> float:
    """Each row of the weights sums to 1."""
    return _largest(module(x, need_weights=True)[1].sum(dim=-1) - 1)


@_question("no weight on the future")
def _future(module: nn.Module, x: Tensor) -> float:
    """Each weight on a later token is 0."""
    return _largest(module(x, need_weights=True)[1].triu(diagonal=1))


@_question("prefix")
def _eval_prefix(module: nn.Module, x: Tensor) -> float:
    """Each output is the same when all tokens after it are cut off."""
    return _prefix(module, x)


@_question("with weights")
def _with_weights(module: nn.Module, x: Tensor) -> float:
    """The outputs are the same when the weights are asked for."""
    return _largest(module(x) - module(x, need_weights=True)[0])


@_question("large scores")
def _large_scores(module: nn.Module, x: Tensor) -> float:
    """It passes “prefix” when all scores are 100,000 times as large, in float64."""
    module.query.weight.mul_(1e5)
    return _prefix(module.double(), x.double())


@_question("in training")
def _in_training(module: nn.Module, x: Tensor) -> float:
    """It passes “prefix” in training mode."""
    return _prefix(module.train(), x)


def _pieces(module: nn.Module, x: Tensor, sizes: list[int]) -> float:
    """How far the outputs for pieces, with kept keys and values, lie from those of one pass."""
    cache, outputs, start = [], [], 0
    for piece in x.split(sizes, dim=1):
        outputs.append(module(piece, start=start, cache=cache))
        start += piece.shape[1]
    return _largest(torch.cat(outputs, dim=1) - module(x))


@_question("one by one")
def _one_by_one(module: nn.Module, x: Tensor) -> float:
    """One token after the other, with kept keys and values, gives the outputs of one pass."""
    return _pieces(module, x, [1] * x.shape[1])


@_question("in pieces")
def _in_pieces(module: nn.Module, x: Tensor) -> float:
    """Pieces of 3, 1 and 4 tokens, with kept keys and values, give the outputs of one pass."""
    return _pieces(module, x, [3, 1, 4])


@_question("shifted")
def _shifted(module: nn.Module, x: Tensor) -> float:
    """The outputs are the same when the text begins at position 100."""
    return _largest(module(x, start=100) - module(x))


@_question("reach")
def _reach(module: nn.Module, x: Tensor) -> float:
    """Another token changes its own output and all later ones; counts those that stay."""
    before, unchanged = module(x), 0
    for j in range(x.shape[1]):
        other = x.clone()
        other[:, j] = torch.randn(len(x), C)
        changes = (module(other) - before).abs().amax(dim=(0, 2))  # (T,)
        unchanged += (changes[j:] < 1e-7).sum().item()
    return float(unchanged)


@_question("gradients")
def _gradients(module: nn.Module, x: Tensor) -> float:
    """Each parameter gets a gradient; counts those that get none."""
    with torch.enable_grad():
        out = module(x)
        (out * torch.randn(out.shape)).sum().backward()
    gradients = [parameter.grad for parameter in module.parameters()]
    return float(sum(g is None or not g.abs().max() > 1e-8 for g in gradients))


@_question("reference")
def _reference(module: nn.Module, x: Tensor) -> float:
    """The right program with the same parameters gives the same outputs."""
    right = Attention(C, N_HEAD, N_KV_HEAD)
    right.load_state_dict(dict(module.named_parameters()))
    return _largest(module(x) - right(x))


@typed
def ask(
    make: Callable[[int, int, int], nn.Module], questions: Iterable[str] | None = None
) -> dict[str, float]:
    """Ask questions of an attention, made for 16 channels, 4 heads and 2 heads of keys.

    Parameters
    ----------
    make
        Takes C, n_head and n_kv_head, such as `Attention` and what `broken` returns. All of
        them get the same parameters.
    questions
        Names of `QUESTIONS`; all of them when left out.

    Returns
    -------
    dict of question -> float
        0 where it passes. Otherwise the largest difference (for “reach” and “gradients” a number of
        failures), or inf where it is nan or an error was raised.

    Raises
    ------
    ValueError
        When no question has such a name.

    Examples
    --------
    >>> ask(broken("heads tiled"), ["shape", "prefix", "in pieces"])
    {'shape': 0.0, 'prefix': 0.0, 'in pieces': 0.0}
    """
    names = list(QUESTIONS if questions is None else questions)
    if unknown := [name for name in names if name not in QUESTIONS]:
        known = ", ".join(map(repr, QUESTIONS))
        raise ValueError(f"No question is called {unknown[0]!r}. The names are: {known}.")
    with same_conditions():
        module = make(C, N_HEAD, N_KV_HEAD)
    return {name: QUESTIONS[name](module) for name in names}


@cache
def _answers(name: str | None) -> tuple[float, ...]:
    return tuple(ask(broken(name)).values())


@typed
def matrix(names: Sequence[str | None]) -> Tensor:
    """Which question finds which bug, (names, QUESTIONS): 1 where the answer is wrong, else 0.

    The name None stands for the right program. What was asked once is kept.

    Raises
    ------
    ValueError
        When no bug has such a name.
    """
    return torch.tensor([_answers(name) for name in names]).ne(0).float()


# ---------------------------------------------------------------- in a model


class GPT(nn.Module):
    """A `TinyGPT` with other attentions, which can go on from kept keys and values.

    Parameters
    ----------
    model
        What gives all other parts. They are shared, not copied.
    attentions
        One for each block, as `Attention` or with a bug. Each holds the norm before it.
    """

    def __init__(self, model: TinyGPT, attentions: Sequence[nn.Module]) -> None:
        super().__init__()
        self.vocab_size, self.context_length = model.vocab_size, model.context_length
        self.embedding, self.norm, self.to_logits = model.embedding, model.norm, model.to_logits
        self.attentions = nn.ModuleList(attentions)
        self.feed_forwards = nn.ModuleList(
            nn.Sequential(block.norm_2, block.feed_forward) for block in model.blocks
        )

    def forward(
        self,
        ids: Tensor,
        start: int = 0,
        cache: Sequence[list] | None = None,
        need_weights: bool = False,
    ) -> Tensor:
        """(B, T) ids -> (B, T, V) logits.

        Parameters
        ----------
        ids
        start, need_weights
            As for `Attention`. The logits alone are returned, also with need_weights.
        cache
            A list for each block, as for `Attention`.

        Raises
        ------
        TypeError, ValueError
            When ids are not whole numbers from 0 to V - 1, (B, T), or reach beyond context_length.
        """
        refuse_bad_ids(ids, self.vocab_size)
        self._refuse_long(start + ids.shape[1])
        x = self.embedding(ids)
        for i, attention in enumerate(self.attentions):
            out = attention(x, start, None if cache is None else cache[i], need_weights)
            x = x + (out[0] if need_weights else out)
            x = x + self.feed_forwards[i](x)
        return self.to_logits(self.norm(x))

    @torch.no_grad()
    def write(
        self,
        ids: Tensor,
        n: int,
        temperature: float = 1.0,
        generator: torch.Generator | None = None,
        *,
        kept: bool = True,
    ) -> Tensor:
        """Append n tokens, as `TinyGPT.generate` does.

        Parameters
        ----------
        ids, n, temperature, generator
            As for `TinyGPT.generate`.
        kept
            Whether it reads the prompt at once, then each new token alone, with the keys and values
            of all before it kept. If not, it reads the whole text again for each token.

        Returns
        -------
        torch.Tensor
            (B, T + n)

        Raises
        ------
        TypeError, ValueError
            As for `TinyGPT.generate`, and when it would read more than context_length tokens.
        """
        refuse_bad_sizes(n=n)
        refuse_bad_ids(ids, self.vocab_size)
        self._refuse_long(ids.shape[1] + n - 1)  # it does not read the last one
        lists: list[list] | None = [[] for _ in self.attentions] if kept else None
        start = 0
        for _ in range(n):
            logits = self(ids[:, start:], start, lists)[:, -1]  # (B, V)
            start = ids.shape[1] if kept else 0
            probabilities = next_token_probabilities(logits, temperature)
            drawn = torch.multinomial(probabilities, 1, generator=generator)
            ids = torch.cat([ids, drawn], dim=1)
        return ids

    def _refuse_long(self, T: int) -> None:
        if self.context_length < T:
            raise ValueError(
                f"The model reads at most context_length = {self.context_length} tokens, kept ones "
                f"among them; here they would be {T}. Give it a shorter text, or write less."
            )


@typed
def with_attention(model: TinyGPT, make: Callable[[int, int, int], nn.Module]) -> GPT:
    """A copy of a model in eval mode, with another attention that has its parameters.

    Parameters
    ----------
    model
        With rotary positions and pre-norm blocks, such as that of `shipped_model`.
    make
        `Attention`, or what `broken` returns. It gets as many heads of keys as of queries.

    Raises
    ------
    ValueError
        When the model has learned positions.
    """
    if model.positions is not None:
        raise ValueError("The model must have rotary positions: TinyGPT(…, rotary=True).")
    model = copy.deepcopy(model)
    attentions = []
    for block in model.blocks:
        old = block.attention
        new = make(old.query.in_features, old.n_head, old.n_head)
        norm = {f"norm.{name}": value for name, value in block.norm_1.state_dict().items()}
        # A batch norm has means of its own beside the parameters, and keeps them.
        new.load_state_dict(old.state_dict() | norm, strict=False)
        attentions.append(new)
    return GPT(model, attentions).eval()
