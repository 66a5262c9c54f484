"""Datasets, preprocessing and batches."""
