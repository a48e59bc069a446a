"""The published model itself, where `make real` has installed it."""

import inspect
import json
import os

import nbformat
import pytest
import torch
from torch import nn

from attention_base.same import one_thread
from benchmarks import real
from helpers.real import study
from helpers.real.gguf import read_gguf
from lesson.builds import right, right_08, right_14
from lesson.exercises.nb15 import fill
from tests.cells import fresh_shell
from tools import notebooks
from tools.site import nouns

pytestmark = pytest.mark.slow

TEXTS = [
    *study.passages(),
    inspect.getsource(study),
    *("the cat was warm so it", " the  cat\n\n\twas", "a_b __c__", "I'll can't we've THEY'RE"),
    *("12 345,678.90", "x²+½y³ = Ⅷ", "3rd 2nd v1.0.2", "£5 €6 ¥7", "100%", "-1e-10"),
    *("día, señor, naïve, Übergröße", "привет, мир!", "γειά σου", "שלום", "مرحبا", "नमस्ते"),
    *("猫は暖かい。", "고양이", "สวัสดี", "👩‍🔬🚀 ok", "e\u0301 combining", "\u00a0nbsp\u2003em"),
    *("\n\n\n", " ", "  ", "\t", "\r\n", "a\r\nb", "...", "!?—–“quotes”", "<|im_start|>user"),
    *("def f(x):\n    x ** 2\n", "<p class='a'>b</p>", "https://a.b/c?d=e&f", "\x00\x7f", "ſ ﬁ"),
]  # fmt: skip


@pytest.fixture
def path(monkeypatch):
    monkeypatch.delenv("ATTENTION_REAL", raising=False)
    path = study.path_of_model()
    if not path:
        pytest.skip("the model is not installed: make real")
    return path


def test_all_numbers_are_those_of_the_gguf_package(path):
    gguf = pytest.importorskip("gguf")
    _, tensors = read_gguf(path)
    theirs = gguf.GGUFReader(path).tensors
    assert {one.name for one in theirs} == tensors.keys()
    for one in theirs:
        right_numbers = gguf.quants.dequantize(one.data, one.tensor_type)
        assert (tensors[one.name].read().flatten().numpy() == right_numbers.flatten()).all(), one


def test_pieces_are_those_of_the_tokenizers_package(path):
    from tokenizers import Tokenizer, models, pre_tokenizers

    facts, _ = read_gguf(path)
    _, pieces = study.the_model()
    merges = [tuple(pair.split(" ")) for pair in facts["tokenizer.ggml.merges"]]
    theirs = Tokenizer(models.BPE(vocab=pieces.ids, merges=merges))
    cuts = [pre_tokenizers.Digits(individual_digits=True)]
    cuts.append(pre_tokenizers.ByteLevel(add_prefix_space=False))
    theirs.pre_tokenizer = pre_tokenizers.Sequence(cuts)
    assert len(TEXTS) >= 40
    for text in TEXTS:
        assert pieces.encode(text)[0].tolist() == theirs.encode(text).ids, text
        assert pieces.decode(pieces.encode(text)[0].tolist()) == text


@pytest.mark.parametrize(
    ("text", "ids", "logits"),  # the largest after the text, by transformers 5.24.0, in float32
    [
        ("the cat was warm so it", [436, 856, 506, 761], [24.557, 23.159, 22.846, 22.748]),
        (0, [253, 34794, 3801, 3012], [19.970, 19.895, 18.979, 18.968]),  # 200 tokens of a passage
    ],
)
def test_the_logits_are_those_of_the_transformers_package(text, ids, logits, path):
    model, pieces = study.the_model()
    given = pieces.encode(study.passages()[text])[:, :200] if text == 0 else pieces.encode(text)
    found = model(given, last=True)[0, 0].topk(4)
    assert found.indices.tolist() == ids
    assert found.values.tolist() == pytest.approx(logits, abs=1e-3)


class Fused(nn.Module):
    """One layer for all three, with biases, and PyTorch's own attention."""

    def __init__(self, C, n_head, base=10_000):
        super().__init__()
        self.n_head, self.d = n_head, C // n_head
        self.qkv, self.out = nn.Linear(C, 3 * C), nn.Linear(C, C)
        self.speeds = base ** (-torch.arange(0, self.d, 2) / self.d)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(2, (3, self.n_head, self.d)).permute(2, 0, 3, 1, 4)
        angles = torch.arange(x.shape[1])[:, None] * self.speeds
        q, k = right_08.turn(q, angles), right_08.turn(k, angles)
        out = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(out.transpose(1, 2).flatten(2))


def fill_fused(attention, query, key, value, proj):
    plain = right_14.MultiHeadAttention(len(query), attention.n_head)
    fill(plain, query, key, value, proj)
    layers = (plain.query, plain.key, plain.value)
    attention.qkv.weight.copy_(torch.cat([layer.weight for layer in layers]))
    attention.out.weight.copy_(plain.proj.weight)
    attention.qkv.bias.zero_(), attention.out.bias.zero_()


class Heads(nn.Module):
    """A list of heads, each of which turns its own queries and keys."""

    def __init__(self, C, n_head, base=10_000):
        super().__init__()
        self.heads = nn.ModuleList(right.Head(C, C // n_head) for _ in range(n_head))
        self.proj, self.speeds = nn.Linear(C, C, bias=False), base
        self.speeds = base ** (-torch.arange(0, C // n_head, 2) / (C // n_head))

    def forward(self, x):
        T, outs = x.shape[1], []
        angles = torch.arange(T)[:, None] * self.speeds
        for head in self.heads:
            q, k = right_08.turn(head.query(x), angles), right_08.turn(head.key(x), angles)
            scores = q @ k.mT / q.shape[-1] ** 0.5
            past = torch.ones(T, T, dtype=torch.bool).tril()
            weights = scores.masked_fill(~past, -torch.inf).softmax(dim=-1)
            outs.append(weights @ head.value(x))
        return self.proj(torch.cat(outs, dim=-1))


def fill_heads(attention, query, key, value, proj):
    n, d = len(query) // len(key), len(query) // len(attention.heads)
    turned = [i + j for i in range(d // 2) for j in (0, d // 2)]
    for h, head in enumerate(attention.heads):
        head.query.weight.copy_(query[h * d : (h + 1) * d][turned])
        head.key.weight.copy_(key[h // n * d : (h // n + 1) * d][turned])
        head.value.weight.copy_(value[h // n * d : (h // n + 1) * d])
    attention.proj.weight.copy_(proj)


@pytest.mark.parametrize(
    ("make", "put_in"),
    [
        (right_08.MultiHeadAttention, fill),
        (right_14.MultiHeadAttention, fill),
        (Fused, fill_fused),
        (Heads, fill_heads),
    ],
    ids=["of 08", "of 14", "fused", "a list of heads"],
)
def test_other_designs_carry_the_weights(make, put_in, path):
    model, pieces = study.the_model()
    ids = pieces.encode(study.passages()[1])[:, :60]
    with torch.no_grad():
        own = make(576, 9, base=model.sizes["base"])
        assert (study.carried(own, put_in)(ids) - model(ids)).abs().max() < 1e-3


def test_the_three_heads_are_those_of_the_file(path):
    model, _ = study.the_model()
    _, _, *weights = study.three_heads()
    layer = model.blocks[13].attention
    for name, stored in zip(("query", "key", "value"), weights[:3], strict=True):
        n = 192 if name == "query" else 64
        weight = getattr(layer, name).weight[-n:]
        weight = weight if name == "value" else study.published(weight, 64)
        assert torch.equal(stored[-n:], weight)
    assert torch.equal(weights[3][:, 384:], layer.proj.weight[:, 384:])


def test_the_notebook_asks_what_is_stored_and_the_model_says_the_same(path, tmp_path, monkeypatch):
    said = tmp_path / "answers.jsonl"
    monkeypatch.setenv("ATTENTION_REAL_ANSWERS", str(said))
    (notebook,) = notebooks.chosen("15")
    with fresh_shell() as shell:
        for cell in nbformat.read(notebook, 4).cells:
            if cell.cell_type == "code":
                ran = shell.run(cell.source)
                assert ran.error is None, f"{cell.source}\n{ran.error!r}"
    nouns.choices()  # the start page of the site
    new = {}
    for line in said.read_text(encoding="utf-8").splitlines():
        new |= json.loads(line)
    stored = json.loads(study.ANSWERS.read_text(encoding="utf-8"))
    texts_of_the_explorer = {key for key in stored if key.startswith(("next_words", "last_looks"))}
    assert new.keys() | texts_of_the_explorer == stored.keys()
    for question, answer in new.items():
        assert study._agree(answer, stored[question]), question


@pytest.mark.parametrize("part", ["wanted", "two nouns", "induction"])  # the quick ones
def test_what_was_measured_is_measured_again(part, path):
    with torch.no_grad(), one_thread():
        found = real.PARTS[part](asked := real.Asked())
    assert numbers(found) == pytest.approx(numbers(asked.stored[part]), abs=0.01)


def numbers(found):
    """All numbers in dictionaries and lists, in their order."""
    if isinstance(found, dict | list | tuple):
        values = found.values() if isinstance(found, dict) else found
        return [number for one in values for number in numbers(one)]
    return [found]


def test_another_quantisation_or_half_a_file_loads_nothing(path, tmp_path, monkeypatch):
    half = tmp_path / "half.gguf"
    with path.open("rb") as file:
        half.write_bytes(file.read(os.path.getsize(path) // 2))
    monkeypatch.setenv("ATTENTION_REAL", str(half))
    with pytest.raises(ValueError, match="is cut off"):
        study.log_odds("a question that is not stored")
