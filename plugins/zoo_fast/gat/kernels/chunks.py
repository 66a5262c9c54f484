"""Parts of the Triton kernels over edges: the heads of a program and the chunks of a node."""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

import triton
import triton.language as tl


@triton.jit
def head_block(H: tl.constexpr, D: tl.constexpr, HB: tl.constexpr, DB: tl.constexpr):
    """Return the heads of a program [HB], and mask and offsets of their elements [HB, DB]."""
    h = tl.program_id(1) * HB + tl.arange(0, HB)
    d = tl.arange(0, DB)
    return h, (h[:, None] < H) & (d[None, :] < D), h[:, None] * D + d[None, :]


@triton.jit
def load_chunk(chunk):
    """Return node, first edge, end and position of the partial sums of a chunk."""
    node = tl.load(chunk).to(tl.int64)
    return node, tl.load(chunk + 1), tl.load(chunk + 2), tl.load(chunk + 3)


@triton.jit
def load_heads(pointer, offset, in_heads):
    """Load heads [HB, DB] of one row in float32."""
    return tl.load(pointer + offset, mask=in_heads, other=0.0).to(tl.float32)


@triton.jit
def load_terms(pointer, h, H):
    """Load one value for each head [HB] in float32."""
    return tl.load(pointer + h, mask=h < H, other=0.0).to(tl.float32)
