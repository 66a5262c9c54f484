"""The laws of each kind, for plugin authors and for the zoo itself.

>>> from zoo.testing import check
>>> check(MyScorer)          # raises LawBroken with the laws it breaks  # doctest: +SKIP
"""

from zoo.testing.cases import Case, cases
from zoo.testing.law import Law, LawBroken, NotApplicable, Outcome
from zoo.testing.run import check, examine

__all__ = ["Case", "Law", "LawBroken", "NotApplicable", "Outcome", "cases", "check", "examine"]
