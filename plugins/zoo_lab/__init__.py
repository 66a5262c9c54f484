"""The laboratory: benchmarks, reproductions of papers, comparisons of variants, memory plans.

Its commands are imported when they run, so that composing and loading models does not import them.
"""

from collections.abc import Sequence

from zoo.command import Command
from zoo.plugin import hookimpl


@hookimpl
def zoo_commands() -> Sequence[Command]:
    return [
        Command(
            "bench",
            "zoo_lab.bench.bench_command:command",
            "Measure time and memory of computations of the zoo and of their peers.",
            example="zoo bench top-k-filter --set batch=8 --json result.json",
        ),
        Command(
            "reproduce",
            "zoo_lab.reproduce.reproduce_command:command",
            "Reproduce published results: check the data, train, and evaluate the best checkpoint.",
            example="zoo reproduce gat-cora --data data --seed 0",
        ),
        Command(
            "compare",
            "zoo_lab.compare.compare_command:command",
            "Train variants of a spec, with several seeds, and compare them.",
            example="zoo compare g2p-bahdanau --swap decoder.attention.scorer=additive,dot "
            "--steps 500",
        ),
        Command(
            "plan",
            "zoo_lab.plan.plan_command:command",
            "Print the memory of each device and the communication of training.",
            example="zoo plan gpt2-small --devices fsdp:64 --batch 8x512",
            after="check",
        ),
    ]
