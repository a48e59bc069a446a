"""Small GGUF files: what a test reads in the place of a published model."""

import struct

import numpy as np
import torch

U32, F32, TEXT, LIST = 4, 6, 8, 9
C, N_LAYER, N_HEAD, N_KV_HEAD, HIDDEN = 32, 2, 4, 2, 64
NAMES = [*"abcdefghijklmnopqrstuvwxyz", "Ġ", "Ġslept", "Ġcooled"]


def text(s):
    return struct.pack("<Q", len(s.encode())) + s.encode()


def _value(value):
    if isinstance(value, str):
        return struct.pack("<I", TEXT) + text(value)
    if isinstance(value, list):
        return struct.pack("<IIQ", LIST, TEXT, len(value)) + b"".join(map(text, value))
    code, kind = ("f", F32) if isinstance(value, float) else ("I", U32)
    return struct.pack(f"<I{code}", kind, value)


def gguf(facts, tensors, kind=0):
    """The bytes of a file; tensors are of float32, whatever format the file says."""
    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(facts))
    header += b"".join(text(name) + _value(value) for name, value in facts.items())
    at = 0
    for name, z in tensors.items():
        sizes = z.shape[::-1]
        header += text(name) + struct.pack(f"<I{len(sizes)}Q", len(sizes), *sizes)
        header += struct.pack("<IQ", kind, at)
        at += z.numel() * 4
    data = b"".join(z.numpy().astype(np.float32).tobytes() for z in tensors.values())
    return header + bytes(-len(header) % 32) + data


def small_model(**changed):
    """Facts and tensors of a model of SmolLM2's kind, with random weights."""
    facts = {
        "general.architecture": "llama",
        "llama.embedding_length": C,
        "llama.block_count": N_LAYER,
        "llama.attention.head_count": N_HEAD,
        "llama.attention.head_count_kv": N_KV_HEAD,
        "llama.feed_forward_length": HIDDEN,
        "llama.context_length": 12,
        "llama.rope.freq_base": 1000.0,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.tokens": NAMES,
        "tokenizer.ggml.merges": ["Ġ z"],
    } | changed
    generator = torch.Generator().manual_seed(0)

    def randn(*sizes):
        return torch.randn(sizes, generator=generator) / sizes[-1] ** 0.5

    tensors = {"token_embd.weight": 4 * randn(len(NAMES), C), "output_norm.weight": torch.ones(C)}
    shared = N_KV_HEAD * C // N_HEAD
    for n in range(N_LAYER):
        sizes = {"attn_q": (C, C), "attn_k": (shared, C), "attn_v": (shared, C)}
        sizes |= {"attn_output": (C, C), "ffn_gate": (HIDDEN, C), "ffn_up": (HIDDEN, C)}
        sizes |= {"ffn_down": (C, HIDDEN), "attn_norm": (C,), "ffn_norm": (C,)}
        tensors |= {f"blk.{n}.{name}.weight": 1.5 * randn(*one) for name, one in sizes.items()}
    return facts, tensors
