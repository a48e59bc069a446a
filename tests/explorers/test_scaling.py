import itertools
import re

from helpers.explorers import explore_scaling


def variance(explorer):
    return float(re.search(r"variance ([\d.e+-]+)", str(explorer))[1])


def test_only_the_root_of_d_is_right_for_every_d():
    explorer = explore_scaling()
    d, divisor = explorer.controls["d"], explorer.controls["divisor"]
    right = {name: set() for name in divisor.options}
    for power, name in itertools.product(range(11), right):
        d.value, divisor.value = 2**power, name
        if 0.8 < variance(explorer) < 1.25:
            right[name].add(2**power)
            assert "Each row prefers some keys" in explorer.view.value
    everywhere = {2**p for p in range(11)}
    assert right == {"none": {1}, "√T": {8}, "√C": {32}, "√d": everywhere, "d": {1}}


def test_it_measures_entropy_and_sensitivity():
    explorer = explore_scaling()
    explorer.controls["d"].value, explorer.controls["divisor"].value = 1024, "d"
    assert "d = 1024, scores divided by d = 1024: variance" in str(explorer)
    assert "entropy 3.00 of at most 3 bits, mean derivative of a weight 0.109" in str(explorer)
    assert "nearly the same weight" in str(explorer)
    explorer.controls["divisor"].value = "none"
    bits, sensitivity = (
        float(n) for n in re.findall(r"(?:entropy|weight) (\d\.\d+)", str(explorer))
    )
    assert bits < 0.2
    assert sensitivity < 0.01
    assert "Most rows are saturated" in str(explorer)
    explorer.controls["d"].value = 16
    assert "one key has more than half" in str(explorer)


def test_it_says_when_rows_are_sharper_than_needed():
    explorer = explore_scaling()
    explorer.controls["d"].value, explorer.controls["divisor"].value = 4, "none"
    assert "more one-sided than at variance 1" in str(explorer)
