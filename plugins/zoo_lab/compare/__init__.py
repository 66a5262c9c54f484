"""Comparisons of variants of one spec: swapped parts, runs, tables and plots."""
