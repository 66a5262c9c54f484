"""The command `zoo vectors`."""

import json
import subprocess
import sys

import numpy as np
import pytest

import zoo
from zoo import ZooError
from zoo.cli.main import main
from zoo_word2vec import Vectors, vectors_from_model


def test_text_files_are_queried_without_importing_torch(vectors, tmp_path):
    vectors.write(tmp_path / "v.txt")
    code = (
        "import sys; from zoo_word2vec.vectors_command import command\n"
        f"command({str(tmp_path / 'v.txt')!r}, ['king'])\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


def _run(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["zoo", "vectors", *map(str, arguments)])
    with pytest.raises(SystemExit) as stop:
        main()
    printed = capsys.readouterr()
    return stop.value.code, printed.out, printed.err


def test_the_command_queries_and_converts(vectors, tmp_path, monkeypatch, capsys):
    file = tmp_path / "v.txt"
    vectors.write(file)
    run = lambda *arguments: _run(monkeypatch, capsys, file, *arguments)  # noqa: E731
    assert run() == (0, "6 words, vectors of size 5\n", "")
    assert run("king", "man")[1] == f"{vectors.similarity('king', 'man'):.4f}\n"
    assert vectors.most_similar("king")[0][0] in run("king")[1].splitlines()[1]
    result = json.loads(run("man", "king", "woman", "--json", "--count", 1)[1])
    assert result["nearest"][0]["word"] == vectors.analogy("man", "king", "woman")[0][0]
    assert run("-o", tmp_path / "v.bin", "--format", "word2vec-binary")[0] == 0
    assert np.array_equal(Vectors.read(tmp_path / "v.bin").matrix, vectors.matrix)
    code, out, err = run("emperor")
    assert (code, out) == (1, "")
    assert err == "the word 'emperor' is not one of the 6 words\n"
    assert run("a", "b", "c", "d")[2] == "got 4 words; expected at most three\n"


def test_vectors_of_a_model_with_a_tokenizer(vectors, tmp_path, monkeypatch, capsys):
    from tokenizers import Tokenizer, models

    model = zoo.compose("skip-gram-tiny", overrides=["model.source.vocab=7"])
    library = Tokenizer(
        models.WordLevel({"<pad>": 0} | {w: i for i, w in enumerate(vectors.words, 1)})
    )
    model.tokenizer = {"source": library.to_str()}
    expected = vectors_from_model(model)
    zoo.save(model, tmp_path / "m.safetensors")
    _, out, _ = _run(monkeypatch, capsys, tmp_path / "m.safetensors", "king", "queen")
    assert out == f"{expected.similarity('king', 'queen'):.4f}\n"
    model.tokenizer = None
    with pytest.raises(ZooError, match="no source tokenizer"):
        vectors_from_model(model)
