"""The score functions of the kernels over edges."""

GAT = 0
GATV2 = 1
DOT = 2
