"""Triton kernels of the decoding loop, imported only if Triton can be used."""
