"""Artifacts: saved models with everything needed to rebuild and verify them.

Loading executes no code from a file: component names are looked up in the registry, and weights
are plain tensors.
"""

from zoo.artifact.hashing import check_hashes
from zoo.artifact.header import Header
from zoo.artifact.loading import load, read_header
from zoo.artifact.mapped_file import open_artifact
from zoo.artifact.saving import is_main_process, save, write
from zoo.artifact.verifying import Check, Verification, verify
from zoo.artifact.weights import named_tensors

__all__ = [
    "Check",
    "Header",
    "Verification",
    "check_hashes",
    "is_main_process",
    "load",
    "named_tensors",
    "open_artifact",
    "read_header",
    "save",
    "verify",
    "write",
]
