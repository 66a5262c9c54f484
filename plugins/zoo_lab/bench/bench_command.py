"""``zoo bench``: measure benchmarks against their peers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zoo.cli.run_options import DeviceOption
from zoo.cli.verbosity import shows_messages, shows_progress

if TYPE_CHECKING:
    import torch

    from zoo_lab.bench.process import BenchOptions, TimeLimits
    from zoo_lab.bench.result import BenchmarkResult
    from zoo_lab.bench.selection import BenchmarkCase


def command(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Benchmarks; default: all of the device type (--list).",
        ),
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="PARAM=VALUE", help="Set a parameter, for example batch=8. Repeatable."
        ),
    ] = None,
    device: DeviceOption = None,
    repeats: Annotated[int, typer.Option(min=1, help="Largest number of measured calls.")] = 20,
    peers: Annotated[bool, typer.Option("--peers/--no-peers", help="Measure the peers.")] = True,
    sweep: Annotated[
        bool,
        typer.Option("--sweep", help="Measure each value of the parameters in 'sweep'."),
    ] = False,
    profile: Annotated[
        bool,
        typer.Option("--profile", help="Print the operations that take the time instead."),
    ] = False,
    max_seconds: Annotated[
        float,
        typer.Option(
            "--limit",
            min=0,
            help="Seconds for each benchmark, in its own process; 0: no limit, in this process.",
        ),
    ] = 120.0,
    total_seconds: Annotated[
        float,
        typer.Option(
            "--total",
            min=0,
            help="Seconds for all benchmarks; what is not measured until then is reported.",
        ),
    ] = 0.0,
    list_benchmarks: Annotated[
        bool, typer.Option("--list", help="List the benchmarks; measure nothing.")
    ] = False,
    json_file: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", help="Write the results to a file; - prints them."),
    ] = None,
) -> None:
    """Measure time and memory of computations of the zoo and of their peers.

    A benchmark is measured only if its results agree with the reference path. The ratio is the
    time of the best peer divided by ours.
    """
    from zoo.cli.wrapping import INTERRUPTED
    from zoo_lab.bench.bench_table import print_results
    from zoo_lab.bench.benchmark_report import ReportWriter
    from zoo_lab.bench.cliffs import find_cliffs
    from zoo_lab.bench.process import BenchOptions, TimeLimits
    from zoo_lab.bench.selection import find_device, has_sweep, select_cases

    to_stdout = json_file == Path("-")
    if list_benchmarks:
        _print_benchmarks(as_json=to_stdout)
        return
    chosen = find_device(device)
    options = BenchOptions(str(chosen), repeats, peers, sweep)
    cases = select_cases(names or (), chosen.type, overrides or ())
    if profile:
        _print_profiles(cases, chosen)
        return
    if sweep:
        cases = [case for case in cases if has_sweep(case)]
    if not cases:
        typer.echo(f"no benchmark has {'a sweep' if sweep else f'targets for {chosen.type}'}")
        return
    arguments = ["zoo", "bench", *(names or ()), *options.arguments()]
    arguments += [part for text in overrides or () for part in ("--set", text)]
    writer = None if json_file is None else ReportWriter(json_file, arguments, chosen)
    results: list[BenchmarkResult] = []

    def save(running: Sequence[BenchmarkResult]) -> None:
        if writer is not None and not to_stdout:
            writer.write([*results, *running])

    def finish() -> None:
        if writer is not None and to_stdout:
            typer.echo(writer.format(results))
        else:
            print_results(results, sweep=sweep)
            for message in find_cliffs(results):
                typer.echo(f"cliff: {message}")

    try:
        _run_cases(cases, options, TimeLimits(max_seconds, total_seconds), results, save)
    except KeyboardInterrupt:
        finish()
        typer.echo("interrupted", err=True)
        raise typer.Exit(INTERRUPTED) from None
    finish()
    if any(result.problem for result in results):
        raise typer.Exit(1)


def _print_benchmarks(*, as_json: bool) -> None:
    from zoo.cli.output import print_json, print_rows
    from zoo_lab.bench.registered import benchmarks

    columns = ("name", "plugin", "summary")
    rows = [(entry.name, entry.plugin, entry.summary) for entry in benchmarks()]
    if as_json:
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
    else:
        print_rows(columns, rows, no_wrap=columns[:2])


def _print_profiles(cases: Sequence[BenchmarkCase], device: torch.device) -> None:
    from zoo_lab.bench.profiling import profile

    for case in cases:
        typer.echo(f"{case.entry.name}\n{profile(case, device)}")


def _run_cases(
    cases: Sequence[BenchmarkCase],
    options: BenchOptions,
    limits: TimeLimits,
    results: list[BenchmarkResult],
    save: Callable[[Sequence[BenchmarkResult]], None],
) -> None:
    """Measure the cases one after another, and append their results."""
    from zoo.cli.progress import task_progress
    from zoo_lab.bench.process import run_in_process
    from zoo_lab.bench.selection import sweep_cases

    if options.sweep and limits.next_seconds() is None:
        cases = [each for case in cases for each in sweep_cases(case)]
    with task_progress() as progress:
        for number, case in enumerate(cases):
            if progress is not None:
                progress("benchmarks", number, len(cases))
            printed = _Summaries()

            def show(running: Sequence[BenchmarkResult], printed: _Summaries = printed) -> None:
                save(running)
                printed.add(running[:-1])  # the last one is not complete

            seconds = limits.next_seconds()
            if seconds is None:
                measured = [options.measure(case, lambda running: save([running]))]
            else:
                measured = run_in_process(case, options, max_seconds=seconds, progress=show)
            results += measured
            save([])
            printed.add(measured)


class _Summaries:
    """Prints each result of a benchmark once, in one line, if there is no progress bar."""

    def __init__(self) -> None:
        self._printed = 0

    def add(self, results: Sequence[BenchmarkResult]) -> None:
        from zoo_lab.bench.bench_table import summary

        for result in results[self._printed :]:
            if shows_messages() and not shows_progress():
                print(summary(result), file=sys.stderr, flush=True)
        self._printed = max(self._printed, len(results))
