"""Where things of the repository are, for tests in any folder."""

from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PROJECT = TESTS.parents[1]
FIXTURES = TESTS / "fixtures"
EARLIER = TESTS / "earlier"
# what pytest has collected, before it leaves tests out
COLLECTED = pytest.StashKey[list[str]]()
