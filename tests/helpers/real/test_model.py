"""The real model's code on a small model of its kind, and in other classes of attention."""

import pytest
import torch
import torch.nn.functional as F

from helpers.positions import rotary
from helpers.real import study
from helpers.real.model import load
from lesson.builds import right_08, right_14
from lesson.exercises.nb15 import fill
from tests.helpers.real.files import N_HEAD, N_KV_HEAD, C, gguf, small_model


@pytest.fixture
def path(tmp_path, monkeypatch):
    path = tmp_path / "small.gguf"
    path.write_bytes(gguf(*small_model()))
    monkeypatch.setenv("ATTENTION_REAL", str(path))
    return path


def by_hand(tensors, ids):
    """Logits (T, V), a head at a time."""
    x = tensors["token_embd.weight"][ids]
    T, d = len(ids), C // N_HEAD
    past = torch.ones(T, T, dtype=torch.bool).tril()
    for n in range(2):
        w = {name[6:-7]: z for name, z in tensors.items() if name.startswith(f"blk.{n}.")}
        z = F.rms_norm(x, (C,), w["attn_norm"], 1e-5)
        heads = []
        for h in range(N_HEAD):
            g = h // (N_HEAD // N_KV_HEAD)
            q = z @ w["attn_q"][h * d : (h + 1) * d].T
            k, v = (z @ w[name][g * d : (g + 1) * d].T for name in ("attn_k", "attn_v"))
            q, k = rotary(q, base=1000.0), rotary(k, base=1000.0)
            scores = (q @ k.T / d**0.5).masked_fill(~past, -torch.inf)
            heads.append(scores.softmax(dim=-1) @ v)
        x = x + torch.cat(heads, dim=-1) @ w["attn_output"].T
        z = F.rms_norm(x, (C,), w["ffn_norm"], 1e-5)
        x = x + (F.silu(z @ w["ffn_gate"].T) * (z @ w["ffn_up"].T)) @ w["ffn_down"].T
    return F.rms_norm(x, (C,), None, 1e-5) @ tensors["token_embd.weight"].T


def test_the_model_computes_what_its_parts_say(path):
    model, _ = load(path)
    ids = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6]])
    assert torch.allclose(model(ids)[0], by_hand(small_model()[1], ids[0]), atol=1e-4)
    assert torch.allclose(model(ids, last=True), model(ids)[:, -1:], atol=1e-5)


def test_it_writes_the_same_with_a_cache(path):
    model, pieces = load(path)
    texts = [study.written(model, pieces, "abc", 6, cached) for cached in (True, False)]
    assert texts[0] == texts[1] != ""


@pytest.mark.parametrize("right", [right_08, right_14], ids=["08", "14"])
def test_your_class_computes_the_same_with_its_weights(right, path):
    own = right.MultiHeadAttention(C, N_HEAD, base=1000.0)
    said = study.whole_model_in(own, fill, "hello", 4)
    model, pieces = study.the_model()
    assert said.startswith("largest difference of a logit: 0.0000\nhello")
    assert said.endswith(study.written(model, pieces, "hello", 4))


def test_a_class_with_a_bug_does_not(path):
    class Unscaled(right_14.MultiHeadAttention):
        def forward(self, x, cache=None):
            return super().forward(x * 1.5, cache)

    own = Unscaled(C, N_HEAD, base=1000.0)
    assert "0.0000" not in study.whole_model_in(own, fill, "hello", 4)


def raises(self, x, cache=None):
    return x[:, :, : x.shape[3]]


CANNOT = {
    "of another size": (lambda: right_14.MultiHeadAttention(2 * C, N_HEAD), {}, "RuntimeError: "),
    "a pair": (None, {"forward": lambda self, x, cache=None: (x, x)}, "returned the tuple"),
    "nothing": (None, {"forward": lambda self, x, cache=None: None}, "it returned None"),
    "one token": (
        None,
        {"forward": lambda self, x, cache=None: x[:, :1]},
        rf"shape \(1, 1, {C}\) with torch.float32",
    ),
    "an error": (None, {"forward": raises}, r"test_model.py:\d+: IndexError: "),
}


@pytest.mark.parametrize("name", CANNOT)
def test_a_class_that_cannot_carry_the_model_is_told(name, path):
    make, methods, said = CANNOT[name]
    of = type("Own", (right_14.MultiHeadAttention,), methods)
    own = make() if make else of(C, N_HEAD, base=1000.0)
    with pytest.raises(ValueError, match=rf"(?s)cannot carry the model: .*{said}") as error:
        study.whole_model_in(own, fill, "hello", 4)
    assert f"for {C} channels and {N_HEAD} heads" in str(error.value)


def test_a_text_that_is_too_long_is_refused(path):
    model, pieces = study.the_model()
    with pytest.raises(ValueError, match="at most 12 tokens; the text has 13"):
        model(pieces.encode("a" * 13))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"general.architecture": "mamba"}, "a model of the kind 'mamba'"),
        ({"tokenizer.ggml.model": "llama"}, "with the pieces 'llama'"),
        ({"llama.block_count": 3}, "blk.2.attn_k.weight is not where SmolLM2 has it"),
    ],
)
def test_another_kind_of_model_is_refused(changed, said, tmp_path):
    facts, tensors = small_model(**changed)
    (tmp_path / "m.gguf").write_bytes(gguf(facts, tensors))
    with pytest.raises(ValueError, match=said):
        load(tmp_path / "m.gguf")
