"""Reading a GGUF file: a small one that is made here, and files that are none."""

import math

import numpy as np
import pytest
import torch

from helpers.real.gguf import read_gguf, unpack
from tests.helpers.real.files import gguf

FACTS = {"name": "tiny", "n": 7, "pieces": ["a", "Ġb"]}


def small_file(kind=0, sizes=(2, 32)):
    return gguf(FACTS, {"w": torch.arange(float(math.prod(sizes))).view(sizes)}, kind)


def written(tmp_path, content):
    (tmp_path / "m.gguf").write_bytes(content)
    return tmp_path / "m.gguf"


def test_facts_and_numbers_are_read(tmp_path):
    facts, tensors = read_gguf(written(tmp_path, small_file()))
    assert facts == FACTS
    assert torch.equal(tensors["w"].read(), torch.arange(64.0).view(2, 32))


def test_numbers_of_8_and_of_4_bits():
    half = np.float16(0.5).tobytes()
    eight = np.frombuffer(half + bytes(range(100, 132)), np.uint8)[None]
    assert unpack(eight, 8)[0, :28].tolist() == [n / 2 for n in range(100, 128)]
    assert unpack(eight, 8)[0, 28] == -64  # the bytes have a sign
    low = np.float16(-1).tobytes()
    four = np.frombuffer(half + low + bytes(i | (15 - i) << 4 for i in range(16)), np.uint8)[None]
    steps = np.arange(16) / 2 - 1
    assert unpack(four, 3)[0].tolist() == [*steps, *steps[::-1]]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is not a GGUF file: it begins with b''"),
        (b"PK\x03\x04 a wheel", "is not a GGUF file: it begins with b'PK"),
        (small_file()[:60], "is cut off or damaged: its header ends at byte"),
        (b"GGUF" + bytes([255]) * 40, "is cut off or damaged"),
        (small_file()[:-1], r"is cut off: w ends at byte [\d,]+, and the file has [\d,]+"),
        (small_file(kind=12), r"w of .* has the format 12 and the sizes \[2, 32\]; read are"),
        (small_file(sizes=(2, 31)), "in rows of 32"),
    ],
    ids=["empty", "another kind", "half a header", "random", "cut off", "Q4_K", "odd rows"],
)
def test_other_files_are_told(content, said, tmp_path):
    with pytest.raises(ValueError, match=said):
        read_gguf(written(tmp_path, content))


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_gguf(tmp_path / "absent.gguf")
