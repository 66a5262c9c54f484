"""Probabilities as pairs m, n for m * 2^n, with a whole number n, in Triton.

Float32 then neither underflows nor loses precision over many frames, and recursions need no
logarithms. A sequence of states is a tuple of K tensors [LANES]: state u is element u // K of
tensor u % K. A thread holds element i of all tensors, and so K states in sequence.
"""

# ruff: noqa: RUF005
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators
# mypy: disable-error-code="assignment"

import triton
import triton.language as tl

LOW = tl.constexpr(-1e7)  # exponent of probability 0
LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def add(m1, n1, m2, n2):
    n = tl.maximum(n1, n2)
    return m1 * tl.exp2(n1 - n) + m2 * tl.exp2(n2 - n), n


@triton.jit
def probability(logit, lse):
    """Return the probability of a logit; NaN is kept."""
    e = (logit.to(tl.float32) - lse) * LOG2_E
    e = tl.where(e < LOW, LOW, e)
    whole = tl.floor(e)
    return tl.where(e == LOW, 0.0, tl.exp2(e - whole)), whole


@triton.jit
def normalise(m, n):
    """Move the exponent of m to n, so that m is from 1 to 2."""
    exponent = (((m.to(tl.int32, bitcast=True) >> 23) & 255) - 127).to(tl.float32)
    return m * tl.exp2(-exponent), tl.where(m > 0, n + exponent, LOW)


@triton.jit
def encode(m, n, base):
    """Return m * 2^(n - base) as one number: its exponent plus its mantissa minus 1.

    That is the bit pattern of m, read as a number, plus n - base.
    """
    bits = m.to(tl.int32, bitcast=True) - 0x3F800000
    return bits.to(tl.float32) * (1.0 / 8388608) + (n - base)


@triton.jit
def decode(code):
    """Return m and n of an encoded number."""
    whole = tl.floor(code)
    return 1.0 + (code - whole), whole


@triton.jit
def normalise_all(ms, ns, K: tl.constexpr):
    new_ms, new_ns = (), ()
    for j in tl.static_range(K):
        m, n = normalise(ms[j], ns[j])
        new_ms, new_ns = new_ms + (m,), new_ns + (n,)
    return new_ms, new_ns


@triton.jit
def largest_exponent(ns, K: tl.constexpr):
    largest = ns[0]
    for j in tl.static_range(1, K):
        largest = tl.maximum(largest, ns[j])
    return tl.max(largest, axis=0)


@triton.jit
def load_all(pointers, LANES: tl.constexpr, K: tl.constexpr):
    values = ()
    for j in tl.static_range(K):
        values = values + (tl.load(pointers + LANES * j),)
    return values


@triton.jit
def store_all(pointers, values, LANES: tl.constexpr, K: tl.constexpr):
    for j in tl.static_range(K):
        tl.store(pointers + LANES * j, values[j])
