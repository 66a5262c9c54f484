"""Composing a model does not import the laboratory."""

import subprocess
import sys

PROGRAM = """
import sys
import zoo
from zoo.spec.meta import skip_dynamo_import
with skip_dynamo_import():
    zoo.compose("gpt2-tiny")
print([name for name in sys.modules if name.startswith("zoo_lab.")])
"""


def test_composing_does_not_import_the_modules_of_the_laboratory():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_plugin_itself_does_not_import_torch():
    program = "import sys, zoo_lab; zoo_lab.zoo_commands(); print('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
