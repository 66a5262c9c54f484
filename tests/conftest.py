"""What every test shares."""

import os
import signal
import threading

import torch

# Tests are tiny and run side by side: a second thread each would only wait.
torch.set_num_threads(1)

# Somebody's own plugin in the environment is not what these tests are about.
os.environ["ZOO_PLUGINS"] = "none"

# A shell that runs the tests in the background has them ignore Ctrl-C, and their children too.
if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    and threading.current_thread() is threading.main_thread()
):
    signal.signal(signal.SIGINT, signal.default_int_handler)
