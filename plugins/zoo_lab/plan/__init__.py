"""Memory plans: the memory of each device and the communication of a training."""
