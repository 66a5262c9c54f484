"""Kernels and CUDA graphs that several accelerations use."""
