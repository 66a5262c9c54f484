"""Triton kernels of embeddings, imported only if Triton can be used."""
