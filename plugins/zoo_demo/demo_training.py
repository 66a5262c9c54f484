"""``zoo demo --train``: train a model to reverse sequences and show its attention weights."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zoo.cli.terminal import console

if TYPE_CHECKING:
    from zoo.interfaces import Model, Sampler
    from zoo_demo.training import DemoProgress


def train_demo(spec: str, overrides: Sequence[str], steps: int, seed: int, output: Path) -> None:
    """Train a small model on the CPU, show its attention weights, save and reload it."""
    import torch

    from zoo.artifact import load, save
    from zoo.errors import ZooError
    from zoo.spec.composition import check_spec, compose
    from zoo_demo.folder import output_folder
    from zoo_demo.reversal import Reversal
    from zoo_demo.training import predict, sequence_accuracy

    torch.set_num_threads(1)  # more threads are slower for tensors this small
    out = console()
    checked, report = check_spec(spec, overrides=overrides)
    model: Any = compose(spec, overrides=overrides, seed=seed)
    sections = checked.sections
    if sections.objective is None or sections.sampler is None:
        raise ZooError(f"spec {spec} has no objective or no sampler; the demo needs both")
    if model.generation_input != "source" or not model.vocab_size("source"):
        raise ZooError(
            f"spec {spec} is not a sequence-to-sequence model over tokens, which the demo needs"
        )
    sampler, objective = sections.sampler.build(), sections.objective.build()
    task = Reversal(model.source.vocab, seed)
    unseen = task.hold_out(500)
    out.print(
        f"[bold]{report.name}[/]: {report.parameters:,} parameters; "
        "task: reverse a sequence of letters\n"
    )
    started = time.monotonic()
    with output_folder(output):
        last = _train_with_progress(model, objective, sampler, task, steps)
    predicted = predict(model, sampler, unseen)
    accuracy = sequence_accuracy(predicted, unseen)
    seconds = time.monotonic() - started
    out.print(
        f"[bold green]{accuracy:.1%}[/] of {len(unseen)} unseen sequences reversed correctly "
        f"after {last.step} steps in {seconds:.0f} s\n"
    )
    _print_predictions(out, unseen[:4], predicted[:4])
    _print_alignment(out, model, sampler, max(unseen[:50], key=len), output, report.name)
    path = output / "model.safetensors"
    save(model, path, provenance={"task": "reversal", "seed": seed, "steps": last.step})
    _check_reloaded(out, model, load(path), path, sampler, unseen)


def _train_with_progress(
    model: Model, objective: Any, sampler: Sampler, task: Any, steps: int
) -> DemoProgress:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from zoo_demo.training import train

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


def _print_predictions(out: Any, sources: list[Any], predicted: list[list[int]]) -> None:
    from zoo_demo.reversal import to_letters

    width = max(len(to_letters(source)) for source in sources)
    for source, tokens in zip(sources, predicted, strict=True):
        correct = tokens == list(reversed(source))
        mark = "[green]correct[/]" if correct else "[red]wrong[/]"
        out.print(f"  {to_letters(source):<{width}}  ->  {to_letters(tokens):<{width}}  {mark}")


def _print_alignment(
    out: Any, model: Model, sampler: Sampler, source: Any, folder: Path, name: str
) -> None:
    """Print and save the attention weights of one sequence, averaged over heads."""
    import torch

    from zoo.attention import recording
    from zoo.errors import MissingExtra
    from zoo.heatmap import Heatmap, render_text, save_png
    from zoo_demo.reversal import to_letters
    from zoo_demo.training import predict

    with recording(model) as log:
        (predicted,) = predict(model, sampler, [source])
    weights_per_step = next((calls for calls in log.values() if calls), None)
    if weights_per_step is None:
        out.print("\nthis model has no attention")
        return
    # [B, H, 1, S] per step -> [T, S]; the last row is the end token.
    steps = weights_per_step[: len(predicted) + 1]
    weights = torch.cat([step[0].mean(dim=0) for step in steps])
    rows = [*to_letters(predicted).split(), "end"][: len(weights)]
    columns = to_letters(source).split()
    out.print("\nattention weights (rows: output tokens, columns: input tokens)\n")
    heatmap = Heatmap(weights, rows, columns)
    out.print(render_text(heatmap))
    try:
        save_png([heatmap], folder / "alignment.png", title=f"{name}: reversal")
    except MissingExtra as error:
        out.print(f"no heatmap saved: {error}", markup=False)
    else:
        out.print(f"heatmap: {folder / 'alignment.png'}", markup=False)


def _check_reloaded(
    out: Any, model: Model, reloaded: Model, path: Path, sampler: Sampler, unseen: list[Any]
) -> None:
    import torch

    from zoo.errors import ArtifactError
    from zoo_demo.reversal import collate

    batch = collate(unseen)
    model.eval()
    reloaded.eval()
    with torch.no_grad():
        same = torch.equal(model(batch).logits, reloaded(batch).logits)
    generated = model.generate(batch, sampler, max_length=12).tokens
    same = same and torch.equal(generated, reloaded.generate(batch, sampler, max_length=12).tokens)
    if not same:
        raise ArtifactError(f"the model reloaded from {path} differs from the saved model")
    count = f"{batch['target'][:, 1:].numel():,}"
    text = f"saved to {path}; the reloaded model computes identical logits ({count} positions)"
    out.print(text, markup=False)
