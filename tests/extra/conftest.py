"""The runtime contract's cases and reports, for a pass on engines that ``scripts/test`` does without."""

from tests.contract.runtimes.conftest import pytest_generate_tests, runs

__all__ = ["pytest_generate_tests", "runs"]
