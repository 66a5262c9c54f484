"""The command line: one file per verb, thin. Nothing here imports torch before it is needed."""
