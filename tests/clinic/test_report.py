"""A report shows the weights, or what depends on what, with the wrong cells outlined."""

from helpers.attention import MultiHeadAttention
from helpers.clinic import diagnose
from helpers.clinic.module_bugs import BrokenAttention
from tests.clinic.written import N_HEAD, C


def test_the_wrong_cells_are_outlined():
    report = diagnose(BrokenAttention("future filled with 0", C, N_HEAD), C=C)
    outlined = report.picture.content.outline
    assert (0, 7) in outlined and (7, 7) not in outlined, "the last row hides nothing"
    bundle = report._repr_mimebundle_()
    assert (
        bundle["text/plain"].startswith(str(report)) and "outlined: row 0" in bundle["text/plain"]
    )
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
