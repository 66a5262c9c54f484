"""Accelerations of token embeddings."""

from collections.abc import Sequence

from zoo.plugin import Acceleration
from zoo_fast.tokens.deferred_unembed import DeferredUnembed
from zoo_fast.tokens.packed_unembed import PackedUnembed
from zoo_fast.tokens.token_lookup import TokenLookup

ACCELERATIONS: Sequence[type[Acceleration]] = (DeferredUnembed, PackedUnembed, TokenLookup)
