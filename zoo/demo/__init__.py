"""Demos: shipped models on sentences and digits; training on sequence reversal."""
