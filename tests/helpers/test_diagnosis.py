"""A report shows the weights, or what depends on what, with the wrong cells outlined."""

import torch

from helpers.attention import MultiHeadAttention
from helpers.diagnosis import diagnose
from tests.attention_clinic.written import N_HEAD, BrokenAttention, C


def test_the_wrong_cells_are_outlined():
    torch.manual_seed(0)  # a weight halfway between two roundings is refused, and any may come
    report = diagnose(BrokenAttention("future filled with 0", C, N_HEAD), C=C)
    bundle = report._repr_mimebundle_()
    outlined = "outlined: row 0, columns 0 to 7; row 1, columns 0 to 7;"
    assert bundle["text/plain"].startswith(str(report)) and outlined in bundle["text/plain"]
    assert "; row 7" not in bundle["text/plain"], "the last row hides nothing"
    yours, right = bundle["text/plain"].split("\nyours\n")[1].split("\nright\n")
    assert "–" not in yours and "–" in right, "a weight of the future that is 0 is hatched"
    assert "<table" in bundle["text/html"] and "future filled with 0" in bundle["text/html"]
    healthy = diagnose(MultiHeadAttention(C, N_HEAD), C=C)
    assert not healthy.picture.content.outline
    unreached = diagnose(BrokenAttention("split and merged by view", C, N_HEAD), C=C)
    assert "depends on" in str(unreached.picture) and unreached.picture.content.outline
    function = BrokenAttention("no mask", C, N_HEAD)
    bare = diagnose(lambda x: function(x, return_weights=True), C=C, n_head=N_HEAD)
    T = len(bare.picture.content.values)
    assert set(bare.picture.content.outline) == {(t, j) for t in range(T) for j in range(t + 1, T)}
    function = BrokenAttention("masked after the softmax", C, N_HEAD)
    bare = diagnose(lambda x: function(x, return_weights=True), C=C, n_head=N_HEAD)
    rows = {(t, j) for t in range(T - 1) for j in range(t + 1)}
    assert set(bare.picture.content.outline) == rows, "all but the last row sum to less than 1"


def test_without_weights_and_bugs_there_is_no_picture():
    report = diagnose(lambda x: x.cumsum(1), C=C)
    assert report.picture is None and report._repr_mimebundle_() == {"text/plain": str(report)}
