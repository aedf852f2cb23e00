"""Results that pages show in full agree with new ones within a tolerance.

Doctest compares text, but processors round differently, so that other networks are drawn. Examples
whose numbers differ have the flag ``SKIP``, which readers of the site do not see, and are compared
here: equal words, and numbers within 15 %, two units of the last digit that is shown, or four
standard errors that are shown (``-7.0 +- 0.4``), which themselves may differ by half. Of ``0.0...``
only the digits are compared.
"""

import doctest
import re
from pathlib import Path

import pytest

PAGES = sorted((Path(__file__).parents[1] / "doc").rglob("*.md"))
NUMBER = re.compile(r"(\+- )?(?<!\w)(-?\d+(?:\.\d*)?(?:\.\.\.)?)(?:(?= +\+- ([\d.]+)))?")
FLAG = "# doctest: +SKIP"


class WithTolerance(doctest.OutputChecker):
    """Compare the numbers of two texts, and the words between them."""

    def check_output(self, want, got, optionflags):
        numbers = [NUMBER.findall(text) for text in (want, got)]
        want = want.replace("<BLANKLINE>", "")
        words = [NUMBER.sub("#", " ".join(text.split())) for text in (want, got)]
        words = [text.replace("# ", "#") for text in words]  # arrays are padded: [0.4 , 0.38]
        equal = words[0].strip() == words[1].strip()
        return equal and all(agree(*pair) for pair in zip(*numbers, strict=True))


def agree(shown, new):
    """Return True if a number is, within the tolerance, the one that is shown.

    Both are text, with the sign of a standard error before, and a standard error behind, or "".
    """
    (is_error, number, error), (_, found, _) = shown, new
    if number.endswith("..."):
        return found.startswith(number[:-3])
    share = 0.5 if is_error else 0.15
    tolerances = 2.001 / 10 ** len(number.partition(".")[2]), share * abs(float(number))
    return abs(float(number) - float(found)) <= max(*tolerances, 4 * float(error or 0))


def test_tolerance():
    checker, flags = WithTolerance(), 0
    assert checker.check_output("error  0.25 of 7 rows\n", "error 0.27 of  7 rows\n", flags)
    assert checker.check_output("-7.01 +- 0.30 nats\n", "-8.18 +- 0.44 nats\n", flags)
    assert not checker.check_output("-7.01 +- 0.30 nats\n", "-8.32 +- 0.44 nats\n", flags)
    assert not checker.check_output("-7.01 +- 0.30 nats\n", "-7.01 +- 0.47 nats\n", flags)
    assert checker.check_output("error 0.0...\n", "error 0.0123\n", flags)
    assert not checker.check_output("error 0.0...\n", "error 0.123\n", flags)
    assert not checker.check_output("error 0.25\n", "error 0.29\n", flags)
    assert not checker.check_output("error 0.25\n", "errors 0.25\n", flags)
    assert not checker.check_output("1 2\n", "1\n", flags)
    assert not checker.check_output("x0 7\n", "x1 7\n", flags)


@pytest.mark.docs
@pytest.mark.parametrize(
    "page", [page for page in PAGES if FLAG in page.read_text("utf-8")], ids=lambda page: page.stem
)
def test_results_that_pages_show(page):
    text = page.read_text("utf-8").replace(FLAG, "")
    example = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    runner = doctest.DocTestRunner(checker=WithTolerance(), optionflags=flags)
    assert runner.run(example).failed == 0
