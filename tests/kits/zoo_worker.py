"""Runs ``zoo`` with the arguments, in each process of a torchrun job."""

from zoo.cli.main import main

main()
