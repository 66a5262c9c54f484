"""Values and their places as one integer, whose maximum is the highest value and its place.

Ranks are ordered as the values; of equal values the one with the lowest place is first. NaN is
above inf or below -inf. Ranks of values of 16 bits have 32 bits, others 64.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators
# Conditions on constants select code at compile time, so they are not joined with others.

import triton
import triton.language as tl

TAKEN = tl.constexpr(-(2**63))
"""A rank below all others."""
TAKEN_SHORT = tl.constexpr(-(2**31))
"""A rank of 32 bits below all others."""


@triton.jit
def rank(values, place):
    """Return the ranks of float32 values with places below 2^32."""
    # 0.0 is added because -0.0 and 0.0 are equal, but not their bits.
    bits = (values + 0.0).to(tl.int32, bitcast=True)
    ordered = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    return (ordered.to(tl.int64) << 32) | (0xFFFFFFFF - place.to(tl.int64))


@triton.jit
def value_of(ranks):
    """Return the float32 values of ranks."""
    ordered = (ranks >> 32).to(tl.int32)
    bits = tl.where(ordered < 0, ordered ^ 0x7FFFFFFF, ordered)
    return bits.to(tl.float32, bitcast=True)


@triton.jit
def place_of(ranks):
    """Return the places of ranks."""
    return (0xFFFFFFFF - (ranks & 0xFFFFFFFF)).to(tl.int32)


@triton.jit
def short_rank(values, place):
    """Return the ranks of values of 16 bits with places below 2^16."""
    bits = values.to(tl.int16, bitcast=True).to(tl.int32)
    bits = tl.where(bits == -32768, 0, bits)  # -0.0
    ordered = tl.where(bits < 0, bits ^ 0x7FFF, bits)
    return (ordered << 16) | (0xFFFF - place)


@triton.jit
def short_value_of(ranks, dtype: tl.constexpr):
    """Return the values of a dtype of 16 bits, in float32."""
    ordered = ranks >> 16
    bits = tl.where(ordered < 0, ordered ^ 0x7FFF, ordered)
    return bits.to(tl.int16).to(dtype, bitcast=True).to(tl.float32)


@triton.jit
def short_place_of(ranks):
    """Return the places of ranks of 32 bits."""
    return 0xFFFF - (ranks & 0xFFFF)
