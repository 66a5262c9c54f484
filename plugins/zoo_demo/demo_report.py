"""Output of ``zoo demo``."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from zoo.cli.output import format_bytes, print_rows
from zoo.cli.terminal import console

if TYPE_CHECKING:
    from rich.text import Text

    from zoo.interfaces import Model
    from zoo_demo.models import DemoModels
    from zoo_demo.translation import Translation

_GAP = 4
_SHOWN_DIGITS = ("2", "4", "7")


def show_models(sentences: Sequence[str], output: Path, device: str = "cpu") -> None:
    """Run the shipped models on the sentences and on the digits, and print what they compute."""
    from zoo_demo.folder import output_folder
    from zoo_demo.models import TRANSLATORS, load_models
    from zoo_demo.translation import clean_sentences, translate

    cleaned = clean_sentences(sentences)
    models = load_models(device)
    with output_folder(output):
        _show_sizes(models)
        translations = {
            label: translate(model, cleaned) for label, model in models.translators.items()
        }
        _show_translations(translations)
        _show_alignments(translations, output)
        _show_digits(models.reader, output)
        label, name = list(TRANSLATORS.items())[-1]
        path = output / f"{name}.safetensors"
        _save_and_verify(models.translators[label], translations[label], path, device)
    _print_next_commands(output, path)


def _print_heading(text: str) -> None:
    console().print(f"\n[bold]{text}[/]\n")


def _print(text: str) -> None:
    console().print(text, markup=False, soft_wrap=True)


def _show_sizes(models: DemoModels) -> None:
    """Print the models with their parameters and the results in the catalogue."""
    from zoo.hub.catalogue import load_catalogue
    from zoo_demo.models import READER, TRANSLATORS

    by_name = {TRANSLATORS[label]: model for label, model in models.translators.items()}
    by_name[READER] = models.reader
    entries = {entry.name: entry for entry in load_catalogue().models}
    rows = []
    for name, model in by_name.items():
        results = entries[name].results if name in entries else ()
        measured = ", ".join(f"{each.name} {each.value:g}" for each in results)
        count = sum(parameter.numel() for parameter in model.parameters())
        rows.append((name, f"{count:,}", measured or "-"))
    _print_heading("Models")
    print_rows(("name", "parameters", "test result"), rows, right=("parameters",))


def _show_translations(translations: Mapping[str, Sequence[Translation]]) -> None:
    _print_heading("Portuguese to English (beam search)")
    rows = [(row[0].source, *(each.text for each in row)) for row in _by_sentence(translations)]
    print_rows(("source", *translations), rows)


def _show_alignments(translations: Mapping[str, Sequence[Translation]], folder: Path) -> None:
    """Print the attention weights of the first sentence, save those of all as pictures."""
    from zoo.errors import MissingExtra
    from zoo.heatmap import render_text, save_png

    _print_heading("Attention weights of the first sentence (rows: output, columns: source)")
    width = console().width
    _print_panels(
        [
            (label, render_text(each[0].alignment, width))
            for label, each in translations.items()
            if each[0].alignment is not None
        ]
    )
    for number, row in enumerate(_by_sentence(translations), 1):
        heatmaps = [
            replace(each.alignment, title=label)
            for label, each in zip(translations, row, strict=True)
            if each.alignment is not None
        ]
        if not heatmaps:
            continue
        try:
            save_png(heatmaps, folder / f"alignment-{number}.png", title=row[0].source)
        except MissingExtra as error:
            _print(f"no pictures of the alignments: {error}")
            return
    _print(f"pictures of all sentences: {folder / 'alignment-*.png'}")


def _by_sentence(
    translations: Mapping[str, Sequence[Translation]],
) -> list[tuple[Translation, ...]]:
    return list(zip(*translations.values(), strict=True))


def _print_panels(panels: Sequence[tuple[str, Text]]) -> None:
    """Print texts with their titles side by side, or below each other if they do not fit."""
    from rich.table import Table

    out = console()
    widths = [max(line.cell_len for line in text.split()) for _, text in panels]
    grid = Table.grid(padding=(0, _GAP, 0, 0))
    if sum(widths) + _GAP * (len(widths) - 1) <= out.width:
        grid.add_row(*(f"[bold]{title}[/]" for title, _ in panels))
        grid.add_row(*(text for _, text in panels))
    else:
        for title, text in panels:
            grid.add_row(f"[bold]{title}[/]")
            grid.add_row(text)
    out.print(grid)


def _show_digits(model: Model, folder: Path) -> None:
    """Print digits with the path of the glimpses; save their images and a picture of the paths."""
    from zoo.errors import MissingExtra
    from zoo_demo.digits import STROKES
    from zoo_demo.glimpse_view import render_digit, save_glimpses, save_image
    from zoo_demo.glimpses import recognise
    from zoo_demo.models import READER

    _print_heading("Digits, recognised from glimpses (numbered in their order)")
    digits = recognise(model, list(STROKES))
    _print_panels(
        [
            (f"{digit.prediction.label} ({digit.prediction.probability:.0%})", render_digit(digit))
            for digit in digits
            if digit.label in _SHOWN_DIGITS
        ]
    )
    correct = sum(digit.is_correct for digit in digits)
    _print(
        f"{correct} of {len(digits)} digits recognised correctly (drawn by code, not from MNIST)"
    )
    images = folder / "digits"
    try:
        images.mkdir(exist_ok=True)
        for digit in digits:
            save_image(digit, images / f"{digit.label}.png")
        save_glimpses(digits, folder / "glimpses.png", title=f"{READER}: glimpses")
    except MissingExtra as error:
        _print(f"no pictures of the digits: {error}")
    else:
        _print(f"pictures: {folder / 'glimpses.png'}, {images}")


def _save_and_verify(
    model: Model, translations: Sequence[Translation], path: Path, device: str
) -> None:
    """Save a model, verify the file, and compare the translations of the reloaded model."""
    from zoo.artifact import load, save, verify
    from zoo.errors import ArtifactError
    from zoo.files import hash_file
    from zoo_demo.translation import translate

    _print_heading("Save, verify, reload")
    save(model, path)
    _print(f"file    {path} ({format_bytes(path.stat().st_size)})")
    _print(f"sha256  {hash_file(path)}\n")
    verification = verify(path, device=device)
    print_rows(
        ("check", "result", "detail"),
        [(check.name, check.status, check.detail) for check in verification.checks],
    )
    again = translate(load(path, device=device), [each.source for each in translations])
    same = [each.hypothesis for each in again] == [each.hypothesis for each in translations]
    if not (verification.ok and same):
        raise ArtifactError(f"the model reloaded from {path} differs from the saved model")
    _print("the reloaded model computes the same translations and scores")


def _print_next_commands(folder: Path, model: Path) -> None:
    from zoo_demo.models import READER, TRANSLATORS

    _print_heading("Next")
    translator, image = next(iter(TRANSLATORS.values())), folder / "digits" / "5.png"
    commands = [
        ["zoo", "demo", "O gato dorme na cadeira."],
        ["zoo", "generate", translator, "Que horas são?"],
        ["zoo", "generate", READER, str(image)] if image.exists() else [],
        ["zoo", "info", str(model)],
        ["zoo", "catalogue", "shipped"],
        ["zoo", "demo", "--train"],
    ]
    for command in filter(None, commands):
        _print(f"  {shlex.join(command)}")
