"""`import_model(check=...)` compares with the original and names the first module that differs."""

import hashlib
import json

import numpy
import pytest
import torch
from hf_model_kit import hf_model
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner

import zoo
from zoo.artifact import read_header
from zoo.cli.main import app
from zoo_exchange.import_plan import plan_import
from zoo_exchange.module_names import related_modules


def tokens(*shape):
    return torch.randint(3, 30, shape, generator=torch.Generator().manual_seed(0))


def reference(name):
    """Return the batch of the zoo and the inputs of transformers."""
    if name == "wav2vec2":
        audio = torch.randn(1, 60, generator=torch.Generator().manual_seed(0))
        return {"source": audio, "target": tokens(1, 2) % 5 + 4}, {"input_values": audio}
    if name == "marian":
        source, target = tokens(2, 6), tokens(2, 5)
        inputs = {"input_ids": source, "decoder_input_ids": target[:, :-1]}
        return {"source": source, "target": target}, inputs
    target = tokens(2, 7)
    return {"target": target}, {"input_ids": target[:, :-1]}


@pytest.fixture
def save_check(tmp_path):
    """Saves a model and a file with its inputs, its logits and the outputs of its modules."""

    def save(name, *, modules=True):
        theirs, folder = hf_model(name), tmp_path / "theirs"
        theirs.save_pretrained(folder)
        batch, inputs = reference(name)
        arrays = {f"batch.{key}": value.numpy() for key, value in batch.items()}
        names = related_modules(plan_import(folder).tensors) if modules else {}

        def record(module_name):
            def hook(_, __, output):
                tensor = output[0] if isinstance(output, tuple) else output
                if isinstance(tensor, torch.Tensor) and tensor.dim() == 3:
                    arrays.setdefault(module_name, tensor.numpy().copy())

            return hook

        for module_name, module in theirs.named_modules():
            if module_name in names and "pos_conv_embed" not in module_name:  # of another shape
                module.register_forward_hook(record(module_name))
        with torch.no_grad():
            arrays["output.logits"] = theirs(**inputs).logits.numpy()
        numpy.savez(tmp_path / "check.npz", **arrays)
        return folder, tmp_path / "check.npz", arrays

    return save


MODELS = ["gpt2", "llama", "marian", "wav2vec2"]


@pytest.mark.parametrize("name", MODELS)
def test_all_modules_of_a_correct_import_agree(save_check, tmp_path, name):
    folder, file, arrays = save_check(name)
    assert len(arrays) > 10
    out = zoo.import_model(folder, tmp_path / "model.safetensors", check=file)
    check = read_header(out).provenance["check"]
    assert check["passed"] is True
    assert check["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
    assert check["tolerance"] == 1e-4
    assert check["max_difference"] < 1e-5
    compared = {name for name in arrays if not name.startswith("batch.")}
    assert set(check["compared"]) == compared
    zoo.load(out)


WRONG = [
    ("gpt2", ["model.decoder.feed_forward.activation=gelu"],
     "decoder.blocks.0.feed_forward.down", "model.decoder.feed_forward.activation=gelu"),
    ("llama", ["model.decoder.norm.eps=0.03"],
     "decoder.blocks.0.attention_norm", "model.decoder.norm.eps=0.03"),
    ("llama", ["model.decoder.attention.scorer=dot"], "decoder.blocks.0.attention.out",
     "model.decoder.attention.scorer.type=luong:dot"),
    ("llama", ["model.decoder.position.theta=100.0"],
     "decoder.blocks.0.attention.out", "model.decoder.position.theta=100.0"),
    ("marian", ["model.source.scaled=false"], "encoder.blocks.0.attention.",
     "model.source.scaled=false"),
    ("wav2vec2", ["model.encoder.norm.place=pre", "model.encoder.norm.embedding=false"],
     "encoder.blocks.0.attention", "model.encoder.norm.place=pre"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "overrides", "module", "setting"), WRONG, ids=str)
def test_a_wrong_setting_fails_in_its_module(
    save_check, tmp_path, name, overrides, module, setting
):
    folder, file, _ = save_check(name)
    out = tmp_path / "model.safetensors"
    with pytest.raises(zoo.ZooError) as caught:
        zoo.import_model(folder, out, check=file, overrides=overrides)
    message = str(caught.value)
    assert f"in '{module}" in message
    (settings,) = [line for line in message.splitlines() if "do not change weights" in line]
    assert setting in settings
    assert settings.count("=") <= 5
    assert not out.exists()


def test_without_activations_the_output_and_all_settings_are_named(save_check, tmp_path):
    folder, file, _ = save_check("gpt2", modules=False)
    overrides = ["model.decoder.norm.eps=0.03"]
    with pytest.raises(zoo.ZooError, match=r"in 'output\.logits'[^$]*add activations") as caught:
        zoo.import_model(folder, tmp_path / "m.safetensors", check=file, overrides=overrides)
    assert "model.decoder.norm.eps=0.03" in str(caught.value)
    assert str(caught.value).count("model.") <= 5


def test_a_file_with_activations_but_no_output_raises(save_check, tmp_path):
    folder, file, arrays = save_check("gpt2")
    arrays.pop("output.logits")
    assert "transformer.h.1" in arrays
    numpy.savez(file, **arrays)
    with pytest.raises(zoo.ZooError, match=r"should have inputs.*'output\.logits'"):
        zoo.import_model(folder, tmp_path / "model.safetensors", check=file)


@pytest.mark.parametrize("name", ["output.logits", "transformer.h.1"])
def test_a_missing_batch_dimension_of_one_raises(save_check, tmp_path, name):
    folder, file, arrays = save_check("gpt2")
    one = {key: value[:1] for key, value in arrays.items()}
    numpy.savez(file, **one)
    zoo.import_model(folder, tmp_path / "model.safetensors", check=file)
    numpy.savez(file, **one | {name: one[name][0]})
    message = rf"'{name}' has shape \[6, \d+\], but .*\[1, 6, \d+\].*batch dimension"
    with pytest.raises(zoo.ZooError, match=message):
        zoo.import_model(folder, tmp_path / "m.safetensors", check=file)


FUNCTIONS = {
    "softmax": lambda logits: torch.softmax(logits, dim=-1),
    "log_softmax": lambda logits: torch.log_softmax(logits, dim=-1),
    "sigmoid": torch.sigmoid,
}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_probabilities_are_compared_under_their_own_name(save_check, tmp_path, function):
    folder, file, arrays = save_check("gpt2", modules=False)
    logits = torch.from_numpy(arrays.pop("output.logits"))
    values = FUNCTIONS[function](logits).numpy()
    numpy.savez(file, **arrays, **{f"output.logits.{function}": values})
    out = zoo.import_model(folder, tmp_path / "model.safetensors", check=file)
    assert read_header(out).provenance["check"]["compared"] == [f"output.logits.{function}"]
    numpy.savez(file, **arrays, **{"output.logits": values})
    with pytest.raises(zoo.ZooError) as caught:
        zoo.import_model(folder, tmp_path / "m.safetensors", check=file)
    assert (f"name the array 'output.logits.{function}'" in str(caught.value)) == (
        function != "sigmoid"
    )
    numpy.savez(file, **arrays, **{f"output.logits.{function}": values * 0.9})
    with pytest.raises(zoo.ZooError, match=rf"in 'output\.logits\.{function}'"):
        zoo.import_model(folder, tmp_path / "m.safetensors", check=file)


def test_the_command_writes_only_with_force(save_check, tmp_path):
    folder, file, _ = save_check("gpt2", modules=False)
    out = tmp_path / "model.safetensors"
    command = ["import", str(folder), "-o", str(out), "--check", str(file)]
    wrong = ["--set", "model.decoder.feed_forward.activation=relu"]
    result = CliRunner().invoke(app, [*command, *wrong])
    assert result.exit_code == 1
    assert "--force" in str(result.exception)
    assert not out.exists()
    assert CliRunner().invoke(app, [*command, *wrong, "--force"]).exit_code == 0
    provenance = read_header(out).provenance["check"]
    assert provenance["passed"] is False
    assert provenance["first_difference"] == "output.logits"
    result = CliRunner().invoke(app, [*command, "--json"])
    assert json.loads(result.output)["check"]["passed"] is True
    result = CliRunner().invoke(app, command)
    assert "check.npz: 1 arrays agree, largest difference" in result.output
    assert CliRunner().invoke(app, [*command, "--tolerance", "0"]).exit_code == 1
    unchecked = CliRunner().invoke(app, [*command[:4], "--force"])
    assert "--force needs --check" in str(unchecked.exception)


def test_activations_may_have_the_names_of_the_model(save_check, tmp_path):
    folder, file, arrays = save_check("gpt2")
    renamed = {k: v for k, v in arrays.items() if k.startswith(("batch.", "output."))}
    numpy.savez(file, **renamed, **{"decoder.blocks.1": arrays["transformer.h.1"]})
    zoo.import_model(folder, tmp_path / "model.safetensors", check=file)


INVALID = [
    ({"output.logits": None}, "should have inputs.*'output.logits'.*it has batch.target"),
    ({"batch.target": None}, "should have inputs, named 'batch.KEY'"),
    ({"batch.target": None, "batch.tokens": [[3, 4]]}, "'target' in the batch.*is missing"),
    ({"batch.target": [[99, 3]]}, "cannot process the inputs"),
    ({"decoder.block.0": [[1.0]]}, "'decoder.block.0' is not a module.*decoder.blocks.0"),
    ({"decoder.blocks": [[1.0]]}, "'decoder.blocks' is not called"),
    ({"decoder.blocks.0": [[1.0]]}, r"'decoder.blocks.0' has shape \[1, 1\].*\[2, 6, 8\]"),
    ({"batch.target": ["a"]}, "'batch.target' has dtype <U1; expected numbers or booleans"),
    ({"output.logits": [1j]}, "'output.logits' has dtype complex128; expected numbers"),
    (
        {"output.logits": numpy.full((2, 6, 31), numpy.nan)},
        "'output.logits' has no value to compare",
    ),
    ({"output.states": [[1.0]]}, "no output 'output.states'; it has 'output.logits'"),
    ({"output.logits.tanh": [[1.0]]}, r"no output 'output.logits.tanh'; .*one of \.softmax, "),
]


@pytest.mark.parametrize(("changes", "message"), INVALID, ids=str)
def test_invalid_files_raise(save_check, tmp_path, changes, message):
    folder, file, arrays = save_check("gpt2", modules=False)
    arrays |= {key: numpy.array(value) for key, value in changes.items()}
    numpy.savez(file, **{key: value for key, value in arrays.items() if value.dtype != object})
    with pytest.raises(zoo.ZooError, match=message):
        zoo.import_model(folder, tmp_path / "model.safetensors", check=file)


def test_values_that_are_nan_in_the_file_are_not_compared(save_check, tmp_path):
    folder, file, arrays = save_check("gpt2", modules=False)
    arrays["output.logits"][0, 2] += 1
    numpy.savez(file, **arrays)
    with pytest.raises(zoo.ZooError, match="differs from the original by 1"):
        zoo.import_model(folder, tmp_path / "model.safetensors", check=file)
    arrays["output.logits"][0, 2] = numpy.nan
    numpy.savez(file, **arrays)
    zoo.import_model(folder, tmp_path / "model.safetensors", check=file)


def test_arrays_of_another_byte_order_are_read(save_check, tmp_path):
    folder, file, arrays = save_check("gpt2", modules=False)
    swapped = {k: v.astype(v.dtype.newbyteorder(">")) for k, v in arrays.items()}
    numpy.savez(file, **swapped)
    zoo.import_model(folder, tmp_path / "model.safetensors", check=file)


def test_an_output_that_is_nan_fails_and_is_recorded(save_check, tmp_path):
    folder, file, _ = save_check("gpt2", modules=False)
    tensors = load_file(folder / "model.safetensors")
    tensors["transformer.ln_f.bias"][0] = float("nan")
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    out = tmp_path / "model.safetensors"
    command = ["import", str(folder), "-o", str(out), "--check", str(file), "--force"]
    result = CliRunner().invoke(app, command)
    assert "differs from the original by inf" in result.output
    assert read_header(out).provenance["check"]["max_difference"] is None


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04junk", b"text"])
def test_a_file_that_is_not_npz_raises(save_check, tmp_path, content):
    folder, file, _ = save_check("gpt2", modules=False)
    file.write_bytes(content)
    with pytest.raises(zoo.ZooError, match=r"check\.npz is not a valid \.npz file"):
        zoo.import_model(folder, tmp_path / "model.safetensors", check=file)
    numpy.save(tmp_path / "one.npy", numpy.zeros(3))
    with pytest.raises(zoo.ZooError, match=r"one\.npy is not a valid .* it has one array, not"):
        zoo.import_model(folder, tmp_path / "m.safetensors", check=tmp_path / "one.npy")
    with pytest.raises(zoo.ZooError, match=r"none\.npz cannot be read"):
        zoo.import_model(folder, tmp_path / "m.safetensors", check=tmp_path / "none.npz")
