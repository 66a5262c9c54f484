"""Plots as SVG pictures."""
