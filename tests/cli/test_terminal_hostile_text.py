"""Control characters and markup in files, plugins and catalogues do not reach the terminal."""

import io
import json
import re
import sys
from functools import partial

import pytest
import yaml
from artifact_kit import rewrite
from cli_kit import Shell
from hostile_kit import HOSTILE, assert_clean, run_clean, string_variants
from plugin_kit import Site, scorer
from rich.text import Text
from safetensors import safe_open
from tokenizers import Tokenizer as Library, models, pre_tokenizers

import zoo
from zoo.cli.terminal import EscapingStream, console
from zoo.errors import escape_controls, one_line
from zoo.hub.publish import write_model_card


@pytest.fixture
def run(capsys, monkeypatch):
    return partial(run_clean, capsys, monkeypatch)


@pytest.fixture
def saved(tmp_path):
    """A saved model with a tokenizer whose tokens contain control characters."""
    words = {f"{HOSTILE}{i}": i for i in range(31)}
    library = Library(models.WordLevel(words, unk_token=f"{HOSTILE}3"))
    library.pre_tokenizer = pre_tokenizers.Whitespace()
    model = zoo.compose("gpt2-tiny")
    model.tokenizer = {"target": library.to_str()}
    return zoo.save(model, tmp_path / "model.safetensors", provenance={"data": "text", "n": [1]})


@pytest.mark.parametrize("key", ["spec", "lock", "places", "provenance", "tokenizer", "probe"])
def test_every_string_of_an_artifact_is_printed_escaped(key, saved, run, tmp_path):
    original = saved.read_bytes()
    with safe_open(saved, framework="pt") as opened:
        data = json.loads(opened.metadata()[key])
    variants = list(string_variants(data))
    assert variants
    for index, variant in enumerate(variants):
        saved.write_bytes(original)
        rewrite(saved, **{key: json.dumps(variant)})
        run("info", saved)
        if index % 16 == 0:
            run("info", saved, "--json")
            run("verify", saved)
            run("generate", saved, "a", "--ids")


@pytest.mark.parametrize("key", ["format", "zoo", "digest", HOSTILE])
def test_every_other_metadata_is_printed_escaped(key, saved, run):
    rewrite(saved, **{key: HOSTILE})
    run("info", saved)
    run("verify", saved)


def test_tensor_names_are_printed_escaped(saved, run):
    rewrite(saved, lambda tensors: tensors.update({HOSTILE: tensors.popitem()[1]}))
    assert "\\x1b]0;title" in run("info", saved)
    run("verify", saved)


@pytest.mark.filterwarnings("ignore:the model does not know")
def test_generated_text_is_printed_escaped(saved, run):
    arguments = ("generate", saved, "a", "--max-length", "8")
    assert "\\u001b]0;title" in run(*arguments, multiline=True)
    run(*arguments, "--stream", multiline=True)


def test_strings_of_specs_maps_and_catalogues_are_printed_escaped(run, tmp_path, saved):
    spec, catalogue, mapping = (tmp_path / f"{n}.yaml" for n in ("spec", "catalogue", "map"))
    entry = {"name": "a", "spec": "b.yaml", "paper": "c", "licence": "d"}
    for variant in string_variants({"zoo": 1, "models": [entry]}):
        catalogue.write_text(yaml.safe_dump(variant))
        run("catalogue", "--catalogue", catalogue)
    for variant in string_variants(dict(zoo.load_spec("rnn-lm").resolve())):
        spec.write_text(yaml.safe_dump(variant))
        run("check", spec)
    for variant in string_variants({"zoo": 1, "rename": {"a.{n}": "b.{n}"}, "drop": ["c"]}):
        mapping.write_text(yaml.safe_dump(variant))
        run(
            "import", saved, "--spec", "rnn-lm", "--map", mapping, "-o", tmp_path / "o", "--dry-run"
        )


@pytest.mark.slow
def test_texts_of_plugins_are_printed_escaped(tmp_path, monkeypatch):
    site = Site(tmp_path / "site", monkeypatch)
    source = scorer("kit-hostile", f"Plain.paper = {HOSTILE!r}\n")
    site.add("hostile-kit", source.replace("Inner product", ascii(HOSTILE)[1:-1]))
    site.add("raising-kit", f"raise RuntimeError({HOSTILE!r})")
    commands = f"[Command('greet', 'a:b', {HOSTILE!r}, {HOSTILE!r})]"
    site.add(
        "command-kit",
        "from zoo.command import Command\nfrom zoo.plugin import hookimpl\n"
        f"@hookimpl\ndef zoo_commands():\n"
        f"    return {commands}\n",
    )
    shell = Shell(tmp_path, site.folder)
    outputs = [
        shell.run(*arguments)
        for arguments in (["list"], ["show", "kit-hostile"], ["plugins", "--verbose"], ["--help"])
    ]
    for output in outputs:
        assert_clean(output.stdout + output.stderr)
    assert all("[red]text[/red]" in output.stdout for output in outputs[:3])


@pytest.mark.parametrize("name", ["x; rm -rf ~", "--index-url=http://example.org", "$(id)", "x'y"])
def test_an_invalid_distribution_is_not_part_of_a_suggested_command(name, saved, run):
    rows = zoo.artifact.read_header(saved).providers
    lock = [{**row, "plugin": "missing", "distribution": name} for row in rows]
    rewrite(saved, lock=json.dumps(lock))
    output = run("verify", saved)
    assert "not a valid requirement" in output
    assert "pip install" not in output


def test_a_model_card_escapes_html_markdown_and_front_matter(saved, tmp_path):
    text = "<img src=x> ![a](http://b) [c](http://d)\n---\nlicense: mit\n# Heading\n````\n`e`"
    spec = {**zoo.artifact.read_header(saved).spec, "description": text}
    provenance = {
        "licence": text,
        "data": text,
        "base_model": text,
        "metrics": {text: 1, "b": 10**400},
    }
    rewrite(saved, spec=json.dumps(spec), provenance=json.dumps(provenance))
    write_model_card(tmp_path, "org/name")
    card = (tmp_path / "README.md").read_text()
    _, front, body = card.split("---\n", 2)
    assert yaml.safe_load(front)["license"] == "other"
    prose = re.sub(r"(`{4,})\w+\n.*?\n\1\n", "", body, flags=re.S)
    assert not re.search(r"<img|(?<!\\)\]\(http|^# Heading|^---$|(?<!\\)`", prose, flags=re.M)
    assert_clean(card + (tmp_path / "tree.svg").read_text())


def test_a_licence_that_is_not_a_string_is_ignored(saved, tmp_path):
    rewrite(saved, provenance=json.dumps({"licence": ["mit"], "metrics": {"a": 10**400}}))
    write_model_card(tmp_path, "org/name")
    assert "## Licence" not in (tmp_path / "README.md").read_text()


def test_consoles_and_streams_escape_but_keep_their_own_styles(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", EscapingStream(stream))
    out = console()
    out._force_terminal, out._color_system = True, None
    out.print(Text(one_line(HOSTILE)))
    out.print(HOSTILE, markup=False)
    print(HOSTILE)
    assert_clean(stream.getvalue().replace("\nforged", ""))
    assert escape_controls("a\tb\nc\x1b") == "a\tb\nc\\u001b"
    assert json.loads(f'"{one_line(HOSTILE)}"') == HOSTILE
