"""Trained weights of the models that `registry.yaml` of attention-zoo lists as shipped."""
