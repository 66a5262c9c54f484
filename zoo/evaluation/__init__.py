"""Evaluation of text files and of models with metrics."""

from zoo.evaluation.text_files import Score as Score, evaluate_files as evaluate_files
