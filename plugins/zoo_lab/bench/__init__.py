"""Measurements of benchmarks: time, memory, the ratio to the best peer and the bound."""
