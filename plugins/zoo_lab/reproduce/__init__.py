"""Reproductions of published results: recipes, data checks, runs and their results."""
