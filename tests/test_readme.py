"""The code of the README runs, and what the README says about its first example is true."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_code_of_the_readme():
    blocks = re.findall(r"^```python\n(.*?)^```$", README.read_text("utf-8"), re.M | re.S)
    names = {}
    exec(blocks[0], names)
    assert names["model"].hidden_layer_sizes_ == (4,)
    report = " ".join(repr(names["model"].evidence_report_).split())
    shown = " ".join(re.findall(r"^#\s+(Predictions.*|\d.*) *", blocks[0], re.M))
    assert report.startswith(shown.removesuffix(" ..."))
    for block in blocks[1:]:
        exec(block, names)
    assert names["sampled"].diagnostics_.converged
    assert names["sampled"].comparison_.adequate
