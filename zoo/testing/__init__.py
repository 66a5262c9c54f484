"""The laws of each kind, as a reusable test suite.

>>> from zoo.testing import check
>>> check(MyScorer)          # raises LawViolation if a law is violated  # doctest: +SKIP
"""

from zoo.testing.law import Law, LawViolation, NotApplicable, Outcome
from zoo.testing.run import Case, cases, check, run_laws

__all__ = ["Case", "Law", "LawViolation", "NotApplicable", "Outcome", "cases", "check", "run_laws"]
