"""The command line: one file per command, thin. Nothing here imports torch before it is needed."""
