"""``zoo demo``: a model learns to reverse sequences while you watch, then shows where it looks."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zoo.cli.output import Set, console

if TYPE_CHECKING:
    from zoo.demo.learning import Progress
    from zoo.interfaces import Model, Sampler

EXAMPLE = "zoo demo --set model.decoder.attention.scorer=dot"


def command(
    spec: Annotated[
        str, typer.Argument(metavar="SPEC", help="A small sequence-to-sequence spec.")
    ] = "bahdanau-reversal",
    overrides: Set = None,
    steps: Annotated[int, typer.Option(min=1, help="Training steps at the most.")] = 1500,
    seed: Annotated[int, typer.Option(help="What weights and data are drawn from.")] = 0,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the model and the picture.")
    ] = Path("zoo-demo"),
) -> None:
    """Train a small model from scratch on the CPU, look at its attention, save and reload it."""
    import torch

    from zoo.artifact import load, save
    from zoo.demo.learning import predict, sequence_accuracy
    from zoo.demo.reversal import Reversal
    from zoo.errors import ZooError
    from zoo.spec.composition import checked, compose

    torch.set_num_threads(1)  # tensors this small only wait for a second thread
    out = console()
    chosen, report = checked(spec, overrides=overrides or ())
    model: Any = compose(spec, overrides=overrides or (), seed=seed)
    sections = chosen.sections
    if sections.objective is None or sections.sampler is None:
        raise ZooError(f"the demo needs a spec with an objective and a sampler; {spec} lacks one")
    if model.reads != "source" or not model.symbols("source"):
        raise ZooError(f"the demo needs a spec that reads tokens and answers them; {spec} does not")
    sampler, objective = sections.sampler.build(), sections.objective.build()
    task = Reversal(model.source.vocab, seed)
    unseen = task.hold_out(500)
    out.print(
        f"[bold]{report.name}[/]: {report.parameters:,} parameters; "
        "task: say a sequence of letters backwards\n"
    )
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ZooError(f"folder {output} cannot be made: {error.strerror}") from None
    started = time.monotonic()
    try:
        last = _watched_training(model, objective, sampler, task, steps)
    except BaseException:
        with contextlib.suppress(OSError):  # it was there before, with something in it
            output.rmdir()
        raise
    said = predict(model, sampler, unseen)
    accuracy = sequence_accuracy(said, unseen)
    spent = time.monotonic() - started
    out.print(
        f"[bold green]{accuracy:.1%}[/] of {len(unseen)} unseen sequences reversed without a "
        f"fault, after {last.step} steps in {spent:.0f} s\n"
    )
    _predictions(out, unseen[:4], said[:4])
    _alignment(out, model, sampler, max(unseen[:50], key=len), output, report.name)
    path = output / "model.safetensors"
    save(model, path, provenance={"task": "reversal", "seed": seed, "steps": last.step})
    _agreement(out, model, load(path), path, sampler, unseen)


def _watched_training(
    model: Model, objective: Any, sampler: Sampler, task: Any, steps: int
) -> Progress:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from zoo.demo.learning import train

    columns = (
        TextColumn("training"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]:.3f}  validation {task.fields[accuracy]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console()) as bar:
        line = bar.add_task("", total=steps, loss=float("nan"), accuracy="-")
        for progress in train(model, objective, sampler, task, steps=steps):
            bar.update(line, completed=progress.step, loss=progress.loss)
            if progress.accuracy is not None:
                bar.update(line, accuracy=f"{progress.accuracy:.0%}")
        bar.update(line, total=progress.step)
    return progress


def _predictions(out: Any, sources: list[Any], said: list[list[int]]) -> None:
    from zoo.demo.reversal import letters

    width = max(len(letters(source)) for source in sources)
    for source, answer in zip(sources, said, strict=True):
        right = answer == list(reversed(source))
        mark = "[green]right[/]" if right else "[red]wrong[/]"
        out.print(f"  {letters(source):<{width}}  ->  {letters(answer):<{width}}  {mark}")


def _alignment(
    out: Any, model: Model, sampler: Sampler, source: Any, folder: Path, name: str
) -> None:
    """Where the model looks while it speaks: one row an output symbol."""
    import torch

    from zoo.attention import recording
    from zoo.demo.learning import predict
    from zoo.demo.reversal import letters
    from zoo.errors import MissingExtra
    from zoo.heatmap import png, terminal

    with recording(model) as log:
        (said,) = predict(model, sampler, [source])
    looks = next((calls for calls in log.values() if calls), None)
    if looks is None:
        out.print("\nthis model has no attention to look at")
        return
    # [B, H, 1, S] a step -> [T, S]: the heads' mean; the last step says the end.
    weights = torch.cat([look[0].mean(dim=0) for look in looks])[: len(said) + 1]
    rows = [*letters(said).split(), "end"][: len(weights)]
    columns = letters(source).split()
    out.print("\nwhere it looks (rows: what it says, columns: what it reads)\n")
    out.print(terminal(weights, rows, columns))
    try:
        png(weights, rows, columns, folder / "alignment.png", title=f"{name}: reversal")
    except MissingExtra as error:
        out.print(f"no picture: {error}", markup=False)
    else:
        out.print(f"picture: {folder / 'alignment.png'}")


def _agreement(
    out: Any, model: Model, again: Model, path: Path, sampler: Sampler, unseen: list[Any]
) -> None:
    import torch

    from zoo.demo.reversal import as_batch
    from zoo.errors import ArtifactError

    batch = as_batch(unseen)
    model.eval()
    again.eval()
    with torch.no_grad():
        same = torch.equal(model(batch).logits, again(batch).logits)
    spoken = model.generate(batch, sampler, max_length=12).tokens
    same = same and torch.equal(spoken, again.generate(batch, sampler, max_length=12).tokens)
    if not same:
        raise ArtifactError(f"the model reloaded from {path} does not agree with the one saved")
    count = f"{batch['target'][:, 1:].numel():,}"
    out.print(f"saved to {path}, reloaded: logits at {count} positions agree bit for bit")
