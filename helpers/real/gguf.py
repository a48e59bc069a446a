"""Read the file of a published model: names and sizes first, then numbers in blocks of 32.

The format is described at https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
"""

import math
import struct
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

KINDS = "BbHhIif?__Qqd"  # how struct names a number of the header, by its kind
TEXT, LIST = 8, 9
BYTES = {0: 128, 1: 64, 3: 20, 8: 34}  # of 32 numbers: float32, float16, 4 bits, 8 bits


class Stored(NamedTuple):
    """Where a tensor is in a file."""

    path: Path
    sizes: list[int]
    kind: int
    start: int  # byte

    def blocks(self) -> np.ndarray:
        """Read its bytes, (N, bytes of 32 numbers)."""
        n = math.prod(self.sizes) // 32 * BYTES[self.kind]
        return np.fromfile(self.path, np.uint8, n, offset=self.start).reshape(-1, BYTES[self.kind])

    def read(self) -> Tensor:
        """Read it, in float32."""
        return torch.from_numpy(unpack(self.blocks(), self.kind).reshape(self.sizes))


def read_gguf(path: str | Path) -> tuple[dict[str, Any], dict[str, Stored]]:
    """Read the header of a GGUF file.

    Returns
    -------
    facts : dict of name -> number, text or list
        Such as "llama.block_count".
    tensors : dict of name -> Stored

    Raises
    ------
    OSError
        When the file cannot be read.
    ValueError
        When it is no GGUF file, is cut off, or has tensors of another format.
    """
    path = Path(path)
    data = np.memmap(path, np.uint8, "r") if path.stat().st_size else np.zeros(0, np.uint8)
    if bytes(data[:4]) != b"GGUF":
        raise ValueError(f"{path} is not a GGUF file: it begins with {bytes(data[:4])!r}.")
    at = 4

    def take(kind: int) -> Any:
        nonlocal at
        if kind == TEXT:
            n = take(10)
            at += n
            if at > len(data):
                raise struct.error
            return bytes(data[at - n : at]).decode("utf8", "replace")
        if kind == LIST:
            kind, n = take(4), take(10)
            return [take(kind) for _ in range(n)]
        code = f"<{KINDS[kind]}"
        at += struct.calcsize(code)
        return struct.unpack_from(code, data, at - struct.calcsize(code))[0]

    try:
        _, n_tensor, n_fact = take(4), take(10), take(10)
        facts = {take(TEXT): take(take(4)) for _ in range(n_fact)}
        table = {}
        for _ in range(n_tensor):
            name, sizes = take(TEXT), [take(10) for _ in range(take(4))]
            table[name] = (sizes[::-1], take(4), take(10))
    except (struct.error, IndexError, OverflowError, MemoryError):
        raise ValueError(f"{path} is cut off or damaged: its header ends at byte {at:,}.") from None
    data_start = -(-at // 32) * 32
    tensors = {}
    for name, (sizes, kind, offset) in table.items():
        if kind not in BYTES or sizes[-1] % 32:
            raise ValueError(
                f"The tensor {name} of {path} has the format {kind} and the sizes {sizes}; read "
                "are the formats 0 (float32), 1 (float16), 3 (Q4_1) and 8 (Q8_0), in rows of 32."
            )
        start = data_start + offset
        end = start + math.prod(sizes) // 32 * BYTES[kind]
        if end > len(data):
            raise ValueError(
                f"{path} is cut off: {name} ends at byte {end:,}, and the file has {len(data):,}."
            )
        tensors[name] = Stored(path, sizes, kind, start)
    return facts, tensors


def unpack(blocks: np.ndarray, kind: int) -> np.ndarray:
    """Compute the numbers of blocks, 32 of each, in float32: (N, bytes) -> (N, 32)."""
    if kind == 0:
        return blocks.view(np.float32)
    if kind == 1:
        return blocks.view(np.float16).astype(np.float32)
    if kind == 8:  # scale * (-128 to 127)
        scale = blocks[:, :2].copy().view(np.float16).astype(np.float32)
        return scale * blocks[:, 2:].view(np.int8)
    # scale * (0 to 15) + smallest: 16 bytes hold the first half in their low bits, then the second
    scale, low = blocks[:, :4].copy().view(np.float16).astype(np.float32).T[..., None]
    return scale * np.concatenate([blocks[:, 4:] & 15, blocks[:, 4:] >> 4], axis=1) + low
