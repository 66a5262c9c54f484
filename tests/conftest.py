"""What every test shares."""

import torch

# Tests are tiny and run side by side: a second thread each would only wait.
torch.set_num_threads(1)
