"""Accelerations of word2vec."""

from collections.abc import Sequence

from zoo.plugin import Acceleration
from zoo_fast.word2vec.tables import CbowTable, SkipGramTable

ACCELERATIONS: Sequence[type[Acceleration]] = (SkipGramTable, CbowTable)
