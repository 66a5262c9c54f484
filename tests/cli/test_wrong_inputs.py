"""Every command with the wrong sort of input: a short message, exit code 1 or 2, no traceback."""

import json
import os
import subprocess
import sys

import pytest
from torch import nn

import zoo

SCRIPT = """
import contextlib, functools, io, json, sys, typer.main
from zoo.cli.main import main
typer.main.get_command = functools.cache(typer.main.get_command)  # else built by each command
results = []
for arguments in json.loads(sys.stdin.read()):
    sys.argv = ["zoo", *arguments]
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
        except BaseException as error:
            code = f"{type(error).__name__}: {error}"
    results.append([code, err.getvalue()])
print(json.dumps(results))
"""
# The commands with a file, folder or name as {}, and the sorts of input that are valid.
VERBS = {
    "check": (["check", "{}"], {"spec", "model"}),
    "compose": (["compose", "{}", "-o", "{out}"], {"spec"}),
    "show": (["show", "{}"], set()),
    "demo --train": (["demo", "--train", "{}"], {"spec"}),
    "info": (["info", "{}"], {"model"}),
    "verify": (["verify", "{}"], {"model"}),
    "generate": (["generate", "{}", "--ids", "3 4"], {"model"}),
    "import": (["import", "{}", "-o", "{out}"], set()),
    "import --spec": (
        ["import", "{weights}", "--spec", "{}", "--map", "{map}", "-o", "{out}"],
        {"spec"},
    ),
    "import --map": (
        ["import", "{weights}", "--spec", "{spec}", "--map", "{}", "-o", "{out}"],
        set(),
    ),
    "export": (["export", "{}", "{out}"], set()),
    "export --map": (["export", "{model}", "{out}", "--map", "{}"], set()),
    "push": (["push", "{}", "org/name"], {"model"}),
    "pull": (["pull", "{}"], set()),
    "eval": (["eval", "--hyp", "{}", "--ref", "{}"], {"text", "spec", "tokenizer"}),
    "catalogue": (["catalogue", "--catalogue", "{}"], set()),
    "test-plugin": (["test-plugin", "{}"], set()),
    "vectors": (["vectors", "{}"], set()),
}
SORTS = ("folder", "empty", "spec", "model", "tokenizer", "text", "missing", "missing-spec")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    root = tmp_path_factory.mktemp("inputs")
    names = {
        "folder": "folder",
        "empty": "empty.safetensors",
        "spec": "spec.yaml",
        "model": "model.safetensors",
        "tokenizer": "tokenizer.json",
        "text": "text.txt",
        "missing": "no-such-file.safetensors",
        "missing-spec": "no-such-file.yaml",
    }
    paths = {sort: root / name for sort, name in names.items()}
    paths["folder"].mkdir()
    (paths["folder"] / "notes.txt").write_text("notes\n")
    paths["empty"].write_bytes(b"")
    paths["text"].write_text("first line\nsecond line\n")
    paths["tokenizer"].write_text(json.dumps({"version": "1.0", "model": {"type": "WordLevel"}}))
    model = zoo.compose("bahdanau-reversal")
    paths["spec"].write_text(json.dumps(model.spec))
    zoo.save(model, paths["model"], probe=False)
    return {sort: str(path) for sort, path in paths.items()}


def _run(commands, folder, cache):
    # The first command writes the index of plugins: after torch is imported, none is written, and
    # each command that reads it builds it again.
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        input=json.dumps([["plugins", "--json"], *commands]),
        capture_output=True,
        text=True,
        timeout=500,
        cwd=folder,
        env={**os.environ, "HF_ENDPOINT": "http://localhost:9", "XDG_CACHE_HOME": cache},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)[1:]


def _commands(files, out):
    known = {"out": out, "spec": files["spec"], "model": files["model"]}
    known |= {"weights": files["model"], "map": files["text"]}
    for verb, (arguments, valid) in VERBS.items():
        for sort in SORTS:
            if sort not in valid:
                filled = [a.replace("{}", files[sort]).format(**known) for a in arguments]
                yield verb, sort, filled


@pytest.fixture(scope="module")
def run_all(files, tmp_path_factory):
    """Run the commands of all tests in one process, because importing torch takes seconds.

    Return the cases of each test with exit code and standard error.
    """
    folder = os.path.dirname(files["spec"])
    written = _write_invalid_files(tmp_path_factory.mktemp("invalid"))
    cases = {
        "wrong": [(case, case[2]) for case in _commands(files, os.path.join(folder, "out"))],
        "near": [(case, case[0]) for case in MISSES],
        "invalid": [(path, ["check", path]) for path in written],
    }
    commands = [arguments for rows in cases.values() for _, arguments in rows]
    results = iter(_run(commands, folder, str(tmp_path_factory.mktemp("cache"))))
    return {test: [(case, *next(results)) for case, _ in rows] for test, rows in cases.items()}


def test_every_command_rejects_every_wrong_input_in_a_few_lines(files, run_all):
    problems = []
    for (verb, sort, _), code, message in run_all["wrong"]:
        lines = message.strip().splitlines()
        path = files[sort]
        shown = path in message
        if code not in (1, 2) or not 1 <= len(lines) <= 12 or "Traceback" in message or not shown:
            problems.append(f"{verb} {sort}: {code} {message}")
    assert problems == [], "\n".join(problems)


# The arguments, and words of the message.
MISSES = [
    (
        ["compose", "model.safetensors", "-o", "x.safetensors"],
        ["is a model", "expected a spec file", "zoo info"],
    ),
    (["import", "w", "--spec", "x", "--map", "model.safetensors"], ["no such file"]),
    (["export", "model.safetensors", "o", "--map", "model.safetensors"], ["expected a map file"]),
    (["catalogue", "--catalogue", "."], ["is a directory; expected a catalogue file"]),
    (["generate", "spec.yaml", "x"], ["is a spec, not a model", "zoo compose spec.yaml"]),
    (["generate", "bahdanau-reversal", "x"], ["'bahdanau-reversal'; it is a spec", "zoo compose"]),
    (["show", "gpt2"], ["'gpt2-small' or 'gpt2-tiny'", "'gpt2' is an importer"]),
    (["check", "gpt2"], ["'gpt2-small' or 'gpt2-tiny'"]),
    (["show", "spec.yaml"], ["spec.yaml is a path", "zoo check", "zoo info"]),
    (["vectors", "glove.txt", "man"], ["glove.txt: no such file", "word vectors"]),
    (["vectors", "model.safetensors"], ["model.safetensors has no word vectors"]),
    (["export", "model.safetensors", "out"], ["model.safetensors was not imported"]),
    (["train", "spec.yaml"], ["section 'train'", "data, optimiser"]),
    (["fit", "spec.yaml"], ["No such command 'fit'", "compose", "generate", "train", "vectors"]),
    (["chek", "spec.yaml"], ["No such command 'chek'", "'check'"]),
]


def test_a_near_miss_names_what_was_meant(run_all):
    for (arguments, words), code, message in run_all["near"]:
        assert code in (1, 2), (arguments, message)
        text = " ".join(message.replace("│", " ").split())
        assert [word for word in words if word not in text] == [], (arguments, text)


INVALID = {
    "tab.yaml": b"zoo: 1\nmodel:\n\ttype: seq2seq\n",
    "latin.yaml": "zoo: 1\nname: caf\xe9\n".encode("latin-1"),
    "empty.yaml": b"",
    "tag.yaml": b"zoo: !!python/object/apply:os.system ['true']\n",
    "deep.yaml": b"zoo: " + b"[" * 10_000,
    "big.yaml": b"# " + b"x" * 50_000_000,
    "list.yaml": b"- 1\n- 2\n",
    "unknown.yaml": b"zoo: 1\nname: x\nmodle: {type: seq2seq}\n",
}


def _write_invalid_files(folder):
    for name, content in INVALID.items():
        (folder / name).write_bytes(content)
    return [*(str(folder / name) for name in INVALID), str(folder), str(folder / "no.yaml")]


def test_invalid_files_never_print_a_traceback(run_all):
    for path, code, message in run_all["invalid"]:
        assert code == 1
        assert "Traceback" not in message
        assert f"{path}:" in message


def test_saving_a_module_that_is_not_a_model_raises(tmp_path):
    with pytest.raises(zoo.ArtifactError, match=r"a Linear cannot be saved.*zoo\.Model"):
        zoo.save(nn.Linear(2, 2), tmp_path / "x.safetensors")
