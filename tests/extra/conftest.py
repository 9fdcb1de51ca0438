"""The runtime contract's cases and reports, for a pass on engines that ``scripts/test`` does without."""

from tests.contract.conftest import case_name, pytest_pyfunc_call
from tests.contract.runtimes.conftest import runs

__all__ = ["case_name", "pytest_pyfunc_call", "runs"]
