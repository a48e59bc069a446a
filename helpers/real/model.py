"""SmolLM2-135M-Instruct (Allal et al. 2025, https://arxiv.org/abs/2502.02737), on any attention.

Its blocks are those of notebook 07 with three changes: norms that only scale (RMSNorm), a gate in
the feed-forward network (SwiGLU), and no biases.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helpers.attention import KVCache, MultiHeadAttention
from helpers.real.gguf import read_gguf
from helpers.real.pieces import Pieces

FORMATS = {  # names of our layers, and of those in the file
    "attention.query": "attn_q",
    "attention.key": "attn_k",
    "attention.value": "attn_v",
    "attention.proj": "attn_output",
    "feed_forward.gate": "ffn_gate",
    "feed_forward.wide": "ffn_up",
    "feed_forward.proj": "ffn_down",
    "norm_1": "attn_norm",
    "norm_2": "ffn_norm",
}


class GatedFeedForward(nn.Module):
    """SwiGLU: of two Linear layers to `hidden` channels, one gates the other, then back to C.

    Shazeer (2020), https://arxiv.org/abs/2002.05202.
    """

    def __init__(self, C: int, hidden: int) -> None:
        super().__init__()
        self.gate = nn.Linear(C, hidden, bias=False)
        self.wide = nn.Linear(C, hidden, bias=False)
        self.proj = nn.Linear(hidden, C, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """(..., C) -> (..., C)."""
        return self.proj(F.silu(self.gate(x)) * self.wide(x))


class RealBlock(nn.Module):
    """An attention and a gated feed-forward network, each reading an RMSNorm and added to x."""

    def __init__(self, attention: nn.Module, C: int, hidden: int, eps: float) -> None:
        super().__init__()
        self.attention, self.feed_forward = attention, GatedFeedForward(C, hidden)
        self.norm_1, self.norm_2 = nn.RMSNorm(C, eps), nn.RMSNorm(C, eps)

    def forward(self, x: Tensor, **options: Any) -> Tensor:
        """(B, T, C) -> (B, T, C); the options are those of the attention."""
        x = x + self.attention(self.norm_1(x), **options)
        return x + self.feed_forward(self.norm_2(x))


class RealGPT(nn.Module):
    """Ids (B, T) to logits (B, T, V); the embedding's rows are the rows of the last layer, too.

    Attributes
    ----------
    context_length : int
        The most tokens that it has learned to read.
    """

    def __init__(self, sizes: dict[str, Any], V: int) -> None:
        super().__init__()
        C, n_head, n_kv_head = (sizes[name] for name in ("C", "n_head", "n_kv_head"))
        self.sizes, self.context_length = sizes, sizes["context_length"]
        make = lambda: MultiHeadAttention(  # noqa: E731
            C, n_head, n_kv_head, rotary=True, rotary_base=sizes["base"]
        )
        self.embedding, self.norm = nn.Embedding(V, C), nn.RMSNorm(C, sizes["eps"])
        self.blocks = nn.ModuleList(
            RealBlock(make(), C, sizes["hidden"], sizes["eps"]) for _ in range(sizes["n_layer"])
        )

    def forward(self, ids: Tensor, cache: dict | None = None, last: bool = False, **options: Any):
        """Ids (B, T) -> logits (B, T, V), or of the last token alone, (B, 1, V).

        With a cache, a dictionary that is empty at first, ids are the tokens behind those that it
        has read. Other options, such as a mask, are those of the attention.
        """
        if ids.shape[1] > self.context_length:
            raise ValueError(
                f"The model reads at most {self.context_length} tokens; the text has "
                f"{ids.shape[1]}. Take its last ones."
            )
        x = self.embedding(ids)
        for i, block in enumerate(self.blocks):
            if cache is not None:
                options["cache"] = cache.setdefault(i, self._new_cache(block))
            x = block(x, **options)
        return self.norm(x[:, -1:] if last else x) @ self.embedding.weight.T

    def _new_cache(self, block: RealBlock) -> Any:
        ours = isinstance(block.attention, MultiHeadAttention)
        return KVCache(self.context_length) if ours else {}


def load(path: str | Path) -> tuple[RealGPT, Pieces]:
    """Load a published model of the kind of SmolLM2 from a GGUF file, in float32.

    Raises
    ------
    OSError, ValueError
        As for `read_gguf`, and when the file holds a model that is built otherwise.
    """
    facts, tensors = read_gguf(path)
    kind = facts.get("general.architecture")
    if kind != "llama" or facts.get("tokenizer.ggml.model") != "gpt2":
        raise ValueError(
            f"{path} holds a model of the kind {kind!r} with the pieces "
            f"{facts.get('tokenizer.ggml.model')!r}; here one of SmolLM2's kind is read, 'llama' "
            "with the pieces 'gpt2'."
        )
    sizes = {
        "C": facts["llama.embedding_length"],
        "n_layer": facts["llama.block_count"],
        "n_head": facts["llama.attention.head_count"],
        "n_kv_head": facts["llama.attention.head_count_kv"],
        "hidden": facts["llama.feed_forward_length"],
        "context_length": facts["llama.context_length"],
        "base": facts["llama.rope.freq_base"],
        "eps": facts["llama.attention.layer_norm_rms_epsilon"],
    }
    pieces = Pieces(facts["tokenizer.ggml.tokens"], facts["tokenizer.ggml.merges"])
    with torch.device("meta"):
        model = RealGPT(sizes, len(pieces.names))
    state = {"embedding.weight": "token_embd.weight", "norm.weight": "output_norm.weight"}
    for n in range(sizes["n_layer"]):
        state |= {
            f"blocks.{n}.{ours}.weight": f"blk.{n}.{theirs}.weight"
            for ours, theirs in FORMATS.items()
        }
    if odd := {*tensors} ^ {*state.values()}:
        raise ValueError(
            f"{path} is built otherwise: {min(odd)} is not where SmolLM2 has it, among "
            f"{len(odd)} tensors."
        )
    read = {ours: tensors[theirs].read() for ours, theirs in state.items()}
    for n in range(sizes["n_layer"]):
        read[f"blocks.{n}.attention.proj.bias"] = torch.zeros(sizes["C"])
    model.load_state_dict(read, assign=True)
    return model.eval().requires_grad_(False), pieces
