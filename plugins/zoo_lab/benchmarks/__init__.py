"""Benchmarks of the plugins, in a folder for each, imported only if the plugin is installed."""

BENCHMARKS: tuple[()] = ()  # of the laboratory itself
