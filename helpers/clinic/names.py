"""The common names of an attention's layers and of a block's parts, all in one place.

`diagnose` looks for these names in a module. A layer may be an `nn.Linear`, a `Conv1D`, whose
weight is stored as (in, out), or an `nn.Parameter`.
"""

from typing import Any

from torch import Tensor, nn

from helpers.numbers import joined


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _sets(text: str) -> list[tuple[str, ...]]:
    """Names that belong together: "q k v, Q K V" is two sets of three."""
    return [_names(part) for part in text.split(",")]


ROLES = ("query", "key", "value")
ROLE_NAMES = _sets(  # of three separate layers
    """
    query key value, W_query W_key W_value, q_proj k_proj v_proj, to_q to_k to_v,
    q_lin k_lin v_lin, wq wk wv, Wq Wk Wv, w_q w_k w_v, W_q W_k W_v, W_Q W_K W_V, WQ WK WV,
    w_qs w_ks w_vs, q k v, Q K V, queries keys values, query_proj key_proj value_proj,
    proj_q proj_k proj_v, query_layer key_layer value_layer, q_linear k_linear v_linear,
    linear_q linear_k linear_v, fc_q fc_k fc_v, q_proj_weight k_proj_weight v_proj_weight
    """
)
FUSED_NAMES = _names("""
    c_attn qkv in_proj to_qkv qkv_proj Wqkv W_qkv w_qkv query_key_value in_proj_weight qkv_weight
    """)  # of one layer for all three
FUSED_BY_HEAD = ("query_key_value",)  # queries, keys and values of head 0, then of head 1, …
FUSED_BY_ROLE = ("c_attn", "in_proj_weight")  # all queries, all keys, all values
KEY_VALUE_NAMES = _names("to_kv kv_proj kv c_kv Wkv W_kv key_value")
PROJECTION_NAMES = _names("""
    proj out_proj c_proj o_proj wo to_out out_lin dense W_o W_O w_o Wo WO fc fc_out fc_o out output
    projection
    """)
HEAD_COUNT_NAMES = _names("n_head num_heads heads h n_heads nhead num_attention_heads")

ATTENTION_NAMES = _names("""
    attention attn att self_attn self_attention sa mha multi_head multi_head_attention
    multihead_attention multihead causal_attention sa_heads sa_head
    """)  # of the attention in a block
FEED_FORWARD_NAMES = _names("feed_forward mlp ffn ff ffwd feedforward feed_fwd net")
NORM_NAMES = _sets(
    """
    norm_1 norm_2, norm1 norm2, ln_1 ln_2, ln1 ln2, input_layernorm post_attention_layernorm,
    attention_norm ffn_norm, attn_norm ffn_norm, attn_norm ff_norm, attn_norm mlp_norm,
    layer_norm_1 layer_norm_2, layer_norm1 layer_norm2, layernorm1 layernorm2, ln_attn ln_mlp,
    attn_ln mlp_ln, norm_attn norm_ff, norm_attn norm_mlp, norm_attn norm_ffn, norm_att norm_ff,
    norm_attention norm_feed_forward, att_norm ff_norm, ln_attn ln_ff, n1 n2, n_1 n_2, ln_a ln_b,
    norm_a norm_b, rms_1 rms_2, rms1 rms2
    """
)
TWO_LAYERS = ("linear1", "linear2")  # the feed-forward of nn.TransformerEncoderLayer


def role_names(module: nn.Module) -> tuple[str, ...] | None:
    """The names of the three layers, in the order of `ROLES`; two, where that of v is missing."""
    for names in ROLE_NAMES:
        if all(is_layer(getattr(module, name, None)) for name in names):
            return names
    for names in ROLE_NAMES:
        if all(_is_made_of_layers(getattr(module, name, None)) for name in names):
            return names
    for names in ROLE_NAMES:
        if all(isinstance(getattr(module, name, None), nn.Linear) for name in names[:2]):
            return names[:2]
    return None


def fused_name(module: nn.Module) -> str | None:
    """The name of the one layer that makes queries, keys and values."""
    return _first(module, FUSED_NAMES)


def query_and_fused_names(module: nn.Module) -> tuple[str, str] | None:
    """The names of a layer for the queries and of one for keys and values."""
    fused = _first(module, KEY_VALUE_NAMES)
    query = _first(module, [names[0] for names in ROLE_NAMES])
    return (query, fused) if query and fused else None


def projection_name(module: nn.Module) -> str | None:
    """The name of the output projection."""
    parts = {name: getattr(module, name, None) for name in PROJECTION_NAMES}
    return next(
        (n for n, part in parts.items() if is_layer(part) or _is_made_of_layers(part)), None
    )


def block_part_names(module: nn.Module) -> tuple[str, str, str, str] | None:
    """The names of a block's attention, feed-forward and two norms; "" for `TWO_LAYERS`."""
    parts = _block_parts(module)
    if None in parts:
        return None
    attention, feed_forward, norms = parts
    return (attention, feed_forward, *norms)


def missing_block_parts(module: nn.Module) -> str:
    """Which parts of a block were found, and which usual names the missing ones may have."""
    attention, feed_forward, norms = _block_parts(module)
    found = [
        f"{what} ({name})"
        for what, name in (("the attention", attention), ("the feed-forward", feed_forward))
        if name
    ]
    found += [f"the norms ({' and '.join(norms)})"] if norms else []
    missing = []
    if attention is None:
        missing.append(f"attention ({', '.join(ATTENTION_NAMES[:4])}, …)")
    if feed_forward is None:
        missing.append(f"feed-forward ({', '.join(FEED_FORWARD_NAMES[:4])}, …)")
    if norms is None:
        pairs = ", ".join(" and ".join(names) for names in NORM_NAMES[:3])
        missing.append(f"two norms ({pairs}, …)")
    return f"found: {joined(found) if found else 'none'}; missing: {joined(missing)}"


def _block_parts(module: nn.Module) -> tuple[str | None, str | None, tuple[str, str] | None]:
    def has(name: str) -> bool:
        return isinstance(getattr(module, name, None), nn.Module)

    attention = next(filter(has, ATTENTION_NAMES), None)
    feed_forward = next(filter(has, FEED_FORWARD_NAMES), None)
    if feed_forward is None and all(map(has, TWO_LAYERS)):
        feed_forward = ""
    norms = next((names for names in NORM_NAMES if all(map(has, names))), None)
    return attention, feed_forward, norms


def own_head_count(module: Any) -> int | None:
    """The number of heads that a module knows under one of the usual names."""
    for name in HEAD_COUNT_NAMES:
        value = getattr(module, name, None)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None


def is_layer(part: Any) -> bool:
    """Tell whether a part multiplies with a matrix: Linear, Conv1D or a parameter."""
    if isinstance(part, nn.Parameter):
        return part.dim() in (2, 3)
    weight = getattr(part, "weight", None)
    matrix = isinstance(weight, Tensor) and weight.dim() == 2
    return isinstance(part, nn.Module) and matrix and not isinstance(part, nn.Embedding)


def _is_made_of_layers(part: Any) -> bool:
    """Tell whether a part may stand for a layer, as one with LoRA or a Sequential does."""
    containers = (nn.ModuleList, nn.ModuleDict, nn.MultiheadAttention)
    return isinstance(part, nn.Module) and not isinstance(part, containers)


def _first(module: nn.Module, names: Any) -> str | None:
    return next((name for name in names if is_layer(getattr(module, name, None))), None)
