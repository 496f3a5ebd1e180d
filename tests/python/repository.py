"""Where things of the repository are, for tests in any folder."""

from pathlib import Path

TESTS = Path(__file__).parent
PROJECT = TESTS.parents[1]
FIXTURES = TESTS / "fixtures"
EARLIER = TESTS / "earlier"
