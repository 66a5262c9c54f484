"""What every test shares."""

import signal
import threading

import torch

# Tests are tiny and run side by side: a second thread each would only wait.
torch.set_num_threads(1)

# A shell that runs the tests in the background has them ignore Ctrl-C, and their children too.
if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    and threading.current_thread() is threading.main_thread()
):
    signal.signal(signal.SIGINT, signal.default_int_handler)
