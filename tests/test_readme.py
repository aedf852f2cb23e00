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
    report = " ".join(repr(names["model"].evidence_report_).split())
    shown = " ".join(re.findall(r"^#\s+(Predictions.*|\d.*) *", blocks[0], re.M))
    percent, words = re.compile(r"\d+(?= %)"), shown.removesuffix(" ...")
    report = report[: len(words)]
    assert percent.sub("", report) == percent.sub("", words)
    for found, given in zip(percent.findall(report), percent.findall(words), strict=True):
        assert abs(int(found) - int(given)) <= 1  # other processors, other last bits
    for block in blocks[1:]:
        exec(block, names)
    assert names["sampled"].diagnostics_.converged
    assert names["sampled"].comparison_.adequate
