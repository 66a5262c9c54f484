"""Weights of other libraries: maps between tensor names, import and export."""
