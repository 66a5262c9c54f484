"""The laws of each kind, for plugin authors and for the zoo itself.

>>> from zoo.testing import check
>>> check(MyScorer)          # raises LawViolation with the laws it breaks  # doctest: +SKIP
"""

from zoo.testing.cases import Case, cases
from zoo.testing.law import Law, LawViolation, NotApplicable, Outcome
from zoo.testing.run import check, run_laws

__all__ = ["Case", "Law", "LawViolation", "NotApplicable", "Outcome", "cases", "check", "run_laws"]
