"""Triton kernels of the CTC loss, imported only if Triton can be used."""
