"""The right attention is right, and each question finds what it should in the wrong ones."""

import inspect

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from helpers import positions, ward
from helpers.attention import MultiHeadAttention, causal_mask
from helpers.gpt import TinyGPT, encode, next_token_loss
from helpers.training import shipped_model
from helpers.ward import EIGHT, OTHERS, QUESTIONS, Attention, around, ask, broken

WARD = EIGHT | OTHERS
FOUND_BY = {
    "softmax over the queries": [
        "rows sum to 1", "prefix", "large scores", "in training", "one by one", "in pieces",
        "reference",
    ],
    "mask dropped when weights are asked for": ["no weight on the future", "with weights"],
    "mask of -1e4": ["large scores"],
    "batch norm": ["in training", "reference"],
    "no mask behind kept keys": ["in pieces"],
    "mask at the top left": ["one by one", "in pieces"],
    "heads tiled": ["reference"],
    "pairs and halves mixed up": ["shifted", "reference"],
}  # fmt: skip


def test_it_is_the_attention_of_the_series_behind_a_norm():
    module, known, x = (
        Attention(16, 4, 4),
        MultiHeadAttention(16, 4, rotary=True),
        torch.randn(3, 8, 16),
    )
    known.load_state_dict(module.state_dict(), strict=False)
    found, expected = module(x, need_weights=True), known(module.norm(x), return_weights=True)
    torch.testing.assert_close(found, expected)


def test_its_grouped_heads_are_those_of_pytorch():
    module, x = Attention(24, 6, 2), torch.randn(3, 8, 24)
    q, k, v = (
        layer(module.norm(x)).unflatten(-1, (-1, 4)).transpose(1, 2)
        for layer in (module.query, module.key, module.value)
    )
    q, k = positions.rotary(q), positions.rotary(k)
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    torch.testing.assert_close(module(x), module.proj(out.transpose(1, 2).flatten(2)))


def test_rotate_begins_anywhere():
    z = torch.randn(2, 3, 5, 8)
    torch.testing.assert_close(ward.rotate(z, 7), positions.rotary(z, torch.arange(7, 12)))


@pytest.mark.parametrize(
    ("sizes", "told"),
    [
        ((10, 4, 2), "C = 10 channels cannot be shared out evenly among n_head = 4"),
        ((16, 4, 3), "n_head must be a multiple of n_kv_head.* got n_head = 4, n_kv_head = 3"),
        ((12, 4, 2), "head_size must be even"),
        ((16, 4, 0), "n_kv_head must be a whole number"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(sizes, told):
    with pytest.raises(ValueError, match=told):
        Attention(*sizes)


# ---------------------------------------------------------------- the bugs and the questions


def test_the_right_one_passes_everything():
    assert ask(Attention) == dict.fromkeys(QUESTIONS, 0.0)
    assert not ward.matrix([None]).any()


@pytest.mark.parametrize("bug", EIGHT)
def test_each_of_the_eight_is_found_by_its_questions_alone(bug):
    answers = ask(broken(bug))
    assert [question for question, wrong_by in answers.items() if wrong_by] == FOUND_BY[bug]
    assert min(answers[question] for question in FOUND_BY[bug]) > 0.1  # far above rounding
    assert ward.matrix([bug])[0].tolist() == [float(q in FOUND_BY[bug]) for q in QUESTIONS]


@pytest.mark.parametrize("bug", WARD)
def test_a_question_finds_each_but_not_by_its_shape(bug):
    answers = ask(broken(bug))
    assert any(answers.values()) and answers["shape"] == 0


def test_no_two_bugs_are_the_same():
    assert len({tuple(ask(broken(bug)).values()) for bug in WARD}) == len(WARD)


def test_reach_and_gradients_count_what_fails():
    assert ask(broken("keys used as values"))["gradients"] == 1  # the weights of the values
    assert ask(broken("view in both"))["reach"] > 10


def test_an_error_and_nan_are_infinitely_wrong():
    class Nan(Attention):
        def forward(self, x):
            return super().forward(x) * torch.nan

    answers = ask(Nan, ["shape", "rows sum to 1", "prefix"])
    assert answers == {"shape": 0.0, "rows sum to 1": torch.inf, "prefix": torch.inf}


def test_a_question_leaves_the_module_and_the_random_state_as_they_were():
    module, state = broken("batch norm")(16, 4, 2), torch.get_rng_state()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    for question in QUESTIONS.values():
        question(module)
    assert module.training and torch.equal(torch.get_rng_state(), state)
    torch.testing.assert_close(module.state_dict(), before, rtol=0, atol=0)


def test_unknown_names_are_told_the_known_ones():
    with pytest.raises(ValueError, match=r"No bug is called 'mask'.*'mask of -1e4'"):
        broken("mask")
    with pytest.raises(ValueError, match=r"No question is called 'leak'.*'prefix'"):
        ask(Attention, ["leak"])


@pytest.mark.parametrize("bug", WARD)
def test_each_says_where_it_was_found(bug):
    assert "Found in: " in WARD[bug].message.splitlines()[-1]


def test_a_function_in_the_place_of_the_right_steps_is_asked_as_they_are():
    def attend(q, k, v):
        mask = causal_mask(q.shape[2], k.shape[2])
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    answers = ask(around(attend))
    without_weights = ["rows sum to 1", "no weight on the future"]
    assert [name for name, wrong_by in answers.items() if wrong_by] == without_weights
    assert ask(around(lambda q, k, v: attend(q, v, k)), ["reference"])["reference"] > 0.1


def test_python_shows_the_changed_source():
    assert "masked_fill(future, -1e4)" in inspect.getsource(broken("mask of -1e4").forward)
    with pytest.raises(TypeError):  # rather than that of the right class
        inspect.getsource(broken("mask of -1e4"))


# ---------------------------------------------------------------- in a model


@pytest.fixture(scope="module")
def gpt():
    return shipped_model()


def written(model, ids, **options):
    return model.write(ids, 30, 0.5, torch.Generator().manual_seed(3), **options)


def test_a_model_with_the_right_one_writes_what_it_wrote(gpt):
    model, letters = gpt
    ids = encode('The "for" statement ', letters)[None]
    expected = model.generate(ids, 30, 0.5, generator=torch.Generator().manual_seed(3))
    served = ward.with_attention(model, Attention)
    assert torch.equal(written(served, ids), expected)
    assert torch.equal(written(served, ids, kept=False), expected)
    torch.testing.assert_close(next_token_loss(served, ids), next_token_loss(model, ids))


def test_a_mask_at_the_top_left_shows_only_when_keys_are_kept(gpt):
    model, letters = gpt
    ids = encode('The "for" statement ', letters)[None]
    right, wrong = (
        ward.with_attention(model, make) for make in (Attention, broken("mask at the top left"))
    )
    assert torch.equal(right(ids), wrong(ids))
    assert torch.equal(written(right, ids), written(wrong, ids, kept=False))
    assert not torch.equal(written(right, ids), written(wrong, ids))


def test_a_bug_that_shows_with_weights_shows_in_the_model():
    model = ward.with_attention(
        TinyGPT(9, 8, 16), broken("mask dropped when weights are asked for")
    )
    ids = torch.arange(8)[None]
    assert not torch.allclose(model(ids), model(ids, need_weights=True), atol=1e-3)


def test_a_model_is_copied_and_each_bug_fits_it():
    old = TinyGPT(9, 8, 16)
    before = nn.utils.parameters_to_vector(old.parameters()).clone()
    for bug in WARD:
        model = ward.with_attention(old, broken(bug))
        nn.init.zeros_(model.embedding.weight)
        assert not model.training and len(list(model.parameters())) == len(list(old.parameters()))
    torch.testing.assert_close(nn.utils.parameters_to_vector(old.parameters()), before)


def test_a_model_refuses_what_it_cannot_read():
    model, ids = ward.with_attention(TinyGPT(9, 8, 16), Attention), torch.zeros(1, 5).long()
    assert model.write(ids, 4).shape == (1, 9)  # it need not read the last one
    for call in (lambda: model.write(ids, 5), lambda: model(ids, 4)):
        with pytest.raises(ValueError, match=r"at most context_length = 8.* would be 9"):
            call()
    with pytest.raises(ValueError, match="rotary=True"):
        ward.with_attention(TinyGPT(9, 8, 16, rotary=False), Attention)
