"""Trains or resumes in each process of a torchrun job; the arguments are a spec and a folder."""

import json
import sys
from pathlib import Path

import zoo

spec, output = map(Path, sys.argv[1:])
zoo.train(json.loads(spec.read_text()), output=output, resume=True, device="cpu")
