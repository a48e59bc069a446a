"""`diagnose` names what is wrong, names a variant by its paper, and tells what a module raises."""

import re
from pathlib import Path

import pytest
import torch

from helpers import clinic
from helpers.clinic import diagnose
from tests.designs.named import BROKEN, RAISING, VARIANTS, C, PaLMBlock


@pytest.mark.parametrize(
    ("what", "status"),
    [*((what, "broken") for what in BROKEN), *((what, "different") for what in VARIANTS)],
)
def test_it_is_named(what, status):
    make, names = (BROKEN | VARIANTS)[what]
    report = diagnose(make().eval(), C=C)
    assert (report.status, set(report.bugs)) == (status, set(names.split("; "))), report
    verdict = " ".join(str(report).split("\n✗")[0].split("\n≠")[0].split())
    assert verdict.endswith("If this is meant, fine.") == (status == "different")


@pytest.mark.parametrize("what", RAISING)
def test_what_a_module_raises_is_told(what):
    make, told = RAISING[what]
    report = diagnose(make().eval(), C=C)
    assert report.status == "broken" or "block_size" in str(report)
    assert told in " ".join(str(report).split())


def test_everything_on_the_page_of_parts_that_may_be_meant_is_tried():
    page = (Path(clinic.__file__).parent / "parts.md").read_text(encoding="utf-8")
    meant = set(re.findall(r"^## (.+)\n    on_purpose=True", page, re.M))
    tried = {name for _, names in VARIANTS.values() for name in names.split("; ")}
    elsewhere = {  # in test_diagnose_designs.py, test_inspection.py and test_other_code.py
        "another input of its layers",
        "keys and values beside those of the tokens",
        "more behind the output projection",
        "residual connection and norm inside of the attention",
        "fused layer split in another order",
        "fused layer split per head",
    }
    assert meant == (meant & tried) | elsewhere


def test_a_branch_that_reads_the_attention_is_not_called_parallel():
    report = diagnose(PaLMBlock(parallel=False), C=C)
    assert report.status == "different" and "parallel" not in str(report)


def test_numbers_of_a_variant_are_told():
    told = {
        "ALiBi": "it is 0.25, 0.06, 0.02 and 4e-03 a token",
        "softcap 2": "with c = 2.00",
        "clamped to ±1": "cut off at -0.30 and 0.30",
        "learned temperature": "divided by 1.89, where √head_size is 2.83",
        "log T": "the logarithm of T = 7",
        "window ahead": "that stand -2, -1 and 0 before it",
        "mean over time": "It is x minus its mean over the tokens.",
    }
    for what, words in told.items():
        torch.manual_seed(0)
        assert words in " ".join(str(diagnose((BROKEN | VARIANTS)[what][0](), C=C)).split()), what
