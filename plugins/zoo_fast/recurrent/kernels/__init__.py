"""Triton kernels of recurrent decoding, imported only if Triton can be used."""
