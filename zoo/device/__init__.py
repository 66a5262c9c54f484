"""What depends on the device: CUDA graphs, and the conditions of Triton kernels."""
