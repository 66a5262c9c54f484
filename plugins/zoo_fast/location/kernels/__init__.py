"""Triton kernels of location-aware scores, imported only if Triton can be used."""
