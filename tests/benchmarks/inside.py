"""What fitted estimators hold, through the helpers of the tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.tools import draws_of, parts_of, result_of, shares_of, standardised

__all__ = ["draws_of", "parts_of", "result_of", "shares_of", "standardised"]
