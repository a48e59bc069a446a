"""`diagnose` on modules as people write them: no false alarm, and the bug is named.

The modules were written without a look at what `diagnose` knows: `designs` in four naming schemes,
`others_right` and `others_broken` in the styles of well-known projects. By default a part of the
former runs, `slow` runs all.
"""

from itertools import groupby

import pytest

from attention_clinic import diagnose
from attention_clinic.bugs import bugs_for
from attention_clinic.wiring import WIRING_BUGS
from tests.attention_clinic.designs import named
from tests.attention_clinic.designs.designs import BUGS, DESIGNS, SCHEMES
from tests.attention_clinic.designs.others_broken import BUGS as BROKEN_BY_OTHERS
from tests.attention_clinic.designs.others_right import RIGHT
from tests.attention_clinic.designs.test_wild import WRONG
from tests.attention_clinic.written import BROKEN, BROKEN_BLOCKS
from tests.told import Told

# What `diagnose` calls a bug of `designs`; those that are missing have the same name there.
NAMES = {
    "scale by √C": "divided by √C",
    "scale by head_size": "divided by head_size, not √head_size",
    "scale by √T": "divided by √T",
    "scale by √n_head": "divided by √n_head",
    "scaled twice": "divided by head_size, not √head_size",
    "scale after the softmax": "scaled after the softmax",
    "softmax over queries": "softmax over the queries",
    "softmax over heads": "softmax over the heads",
    "softmax twice": "softmax taken twice",
    "no softmax, hidden scores 0": "no softmax, masked with 0",
    "mask inverted": "mask not inverted",
    "mask one too strict": "diagonal masked too",
    "mask transposed": "upper triangle kept",
    "hidden scores 0.0": "future filled with 0",
    "hidden scores 1e-9": "future filled with 0",
    "hidden scores -1.0": "future filled with -1",
    "mask after the softmax": "masked after the softmax",
    "whole mask": "mask not cut to T tokens",
    "sdpa without is_causal": "no mask",
    "sdpa with the mask reversed": "mask reversed for scaled_dot_product_attention",
    "sdpa and scale": "divided by head_size, not √head_size",
    "sdpa with scale 1": "no scale",
    "sdpa on axes (B, T, heads, d)": "tokens and heads not transposed",
    "roles of q and k swapped, mask transposed": "queries and keys swapped; upper triangle kept",
    "q and k swapped": "queries and keys swapped",
    "one layer for q and k": "one layer for queries and keys",
    "queries are x": "x used as queries",
    "keys from the query layer": "queries used as keys",
    "values are x": "x used as values",
    "value layer unused": "x used as values",
    "values from the key layer": "keys used as values",
    "keys averaged": "keys used as values",
    "heads split by view": "split by view, without transpose",
    "only values split by view": "only the values split by view",
    "heads merged by view": "merged by view, without transpose",
    "heads split and merged by view": "split and merged by view",
    "interleaved split": "channels interleaved by the split",
    "interleaved merge": "channels interleaved by the merge",
    "heads reversed in the merge": "heads reversed by the merge",
    "batch and tokens mixed": "batch and tokens mixed by the split",
    "merged by view after transpose": "view of a tensor that is not contiguous",
    "output projection forgotten": "output projection never used",
    "output projection twice": "output projection applied twice",
    "output projection per head": "output projection applied to each head",
    "dropout in eval": "dropout left on",
    "weights detached": "no gradient to query and key",
    "queries without gradient": "no gradient to query",
    "RoPE along the heads": "rotary positions that cancel",
    "groups tiled": "groups tiled; grouped-query attention (Ainslie et al. 2023)",
    "RoPE on queries only": "rotary positions on the queries only",
    "RoPE on values as well": "rotary positions on the values too",
    "batch_first forgotten, mask of size B": "batch_first forgotten",
    "mask of nn.MultiheadAttention inverted": "mask not inverted",
    "nn.MultiheadAttention without mask": "no mask",
    "no residual around attention": "no residual connection around the attention",
    "no residual around the feed-forward": "no residual connection around the feed-forward",
    "no residual at all": "no residual connections",
    "half residual": "half residual connections",
    "residual twice": "residual connection added twice",
    "norm twice": "norm applied twice",
    "norm on the stream, attention": "norm on the residual stream, at the attention",
    "norm on the stream, feed-forward": "norm on the residual stream, at the feed-forward",
    "norm on the stream, both": "norm on the residual stream",
    "norm behind the attention": "norm after the attention",
    "no norm before attention": "no norm for the attention",
    "no norm before the feed-forward": "no norm for the feed-forward",
    "feed-forward in place of attention": "feed-forward in place of the attention",
    "feed-forward missing": "no feed-forward",
    "attention missing": "no attention",
    "feed-forward first": "feed-forward before attention",
    "attention's sum lost": "no attention",
    "mixed pre-norm and post-norm": "pre-norm and post-norm mixed",
    "post-norm without residual": "no residual connection around the attention",
    "post-norm with one norm": "one norm for both",
    "batch norm": "batch norm instead of layer norm",
    "norm over tokens": "norm over the tokens",
    "RMS norm over tokens": "norm over the tokens",
    "feed-forward centres over tokens": "feed-forward mixes tokens",
    "feed-forward without activation": "no activation in the feed-forward",
    "block without mask": "no mask",
    "block without scale": "no scale",
    "one block without mask": "no mask",
    "one block without scale": "no scale",
    "one block without residual": "no residual connection around the attention",
}
# What a mask is filled with, and before or after what, makes other numbers of the same mistake.
NAMES_IN_SCHEME = {
    # One cannot be told from the other.
    ("q and k swapped", "nano"): "fused layer split as k, q, v",
    ("roles of q and k swapped, mask transposed", "nano"): "upper triangle kept",
    ("hidden scores -1.0", "raschka"): "future filled with -1, then scaled",
    ("mask added as 1 and 0", "raschka"): "mask added as 1 and 0, then scaled",
    ("no softmax", "llama"): "no softmax, masked with the smallest float",
    ("softmax over heads", "llama"): "softmax over the heads, masked with -1e9",
    ("mask inverted", "llama"): "mask not inverted, masked with a large number",
    ("mask one too strict", "llama"): "diagonal masked with -1e9",
    ("hidden scores 1e-9", "llama"): "no mask",  # 1e-9 is added to the scores
    ("hidden scores -1.0", "llama"): "mask added as 1 and 0",  # -1 is added, which is the same
}
# Another order of channels or heads, with which a model learns as well.
MEANT = ("fused layer split", "channels interleaved", "heads reversed", "groups tiled", "grouped")
# Right, and by a formula that `diagnose` does not know.
UNEXPLAINED = ("float16",)


def expected(bug, scheme):
    name = NAMES_IN_SCHEME.get((bug.name, scheme), NAMES.get(bug.name, bug.name))
    return set(name.split("; "))


def by_name(case):
    return case.name if hasattr(case, "name") else None


# The reports that are stored: of each design and bug one, in the first scheme that it has.
STORED = [design for _, (design, *_) in groupby(DESIGNS, lambda one: one.name.split(", ")[0])]


def quick(cases, are_stored):
    """By default those whose report is stored, and a part of the others, which repeat them."""
    return [
        case if stored or i % 11 == 0 else pytest.param(*case, marks=pytest.mark.slow)
        for i, (case, stored) in enumerate(zip(cases, are_stored, strict=True))
    ]


@pytest.mark.parametrize(
    ("design",), quick([(one,) for one in DESIGNS], [one in STORED for one in DESIGNS]), ids=by_name
)
def test_no_false_alarm(design, snapshot):
    report = diagnose(design.build(), C=design.C, n_head=design.n_head)
    rounded = "float16" in design.name
    allowed = {"healthy", "different"} if rounded else {"different"}
    assert report.status in ({"healthy"} if design.kind == "textbook" else allowed), report
    assert not set(report.not_checked) - {"rows sum to 1", "no weight on the future"}
    if report.status == "different":
        told = " ".join(str(report).split())
        explained = not any(name in design.name for name in UNEXPLAINED)
        assert told.startswith("DIFFERENT: ") and bool(report.bugs) == explained
        assert ("If this is meant, fine." in told) == explained
        assert "BROKEN" not in told and "✗" not in told
    if design in STORED:
        assert str(report) == snapshot.use_extension(Told)


CASES = [(bug, scheme) for bug in BUGS for scheme in bug.build_by_scheme]


IN_FIRST_SCHEME = [scheme == next(iter(bug.build_by_scheme)) for bug, scheme in CASES]


@pytest.mark.parametrize(("bug", "scheme"), quick(CASES, IN_FIRST_SCHEME), ids=by_name)
def test_the_bug_is_named(bug, scheme, snapshot):
    report = diagnose(bug.build_by_scheme[scheme](), C=bug.C, n_head=bug.n_head)
    names = expected(bug, scheme)
    only_custom = all(name.startswith(MEANT) for name in names)
    assert report.status == ("different" if only_custom else "broken")
    assert set(report.bugs) == names, report
    if scheme == next(iter(bug.build_by_scheme)):
        assert str(report) == snapshot.use_extension(Told)


@pytest.mark.parametrize(("name", "build", "C", "what"), RIGHT, ids=[name for name, *_ in RIGHT])
def test_modules_of_others_that_are_right(name, build, C, what, snapshot):
    report = diagnose(build(), C=C)
    assert report.status != "broken", f"{what}\n{report}"
    assert str(report) == snapshot.use_extension(Told)


@pytest.mark.parametrize(
    ("name", "build", "C", "what"), BROKEN_BY_OTHERS, ids=[n for n, *_ in BROKEN_BY_OTHERS]
)
def test_modules_of_others_that_are_broken(name, build, C, what, snapshot):
    report = diagnose(build(), C=C)
    assert report.status == "broken", f"{what}\n{report}"
    assert str(report) == snapshot.use_extension(Told)


def test_every_scheme_has_enough_bugs_that_show():
    for scheme in SCHEMES:
        named = [b for b in BUGS if scheme in b.build_by_scheme]
        assert len(named) >= 40
    assert len(DESIGNS) >= 40


def test_every_known_bug_is_tried_somewhere():
    tried = {*BROKEN, *BROKEN_BLOCKS, *NAMES.values(), *NAMES_IN_SCHEME.values()}
    tried |= {bug.name for bug in BUGS}
    known = {bug.name for bug in [*bugs_for(n_head=3), *WIRING_BUGS]}
    tried |= {"attention across the batch"}  # in tests/attention_clinic/test_diagnosis.py
    tried |= {name for _, name in (*named.BROKEN.values(), *named.VARIANTS.values())}
    tried |= {"heads added"}  # of a list of heads, in tests/attention_clinic/test_heads.py
    tried |= {name for *_, name in WRONG.values()}
    assert known <= tried
