from typing import Any

import pytest
import torch
from typer.testing import CliRunner

import zoo
import zoo.generation
from zoo import SpecError, ZooError
from zoo.cli.main import app
from zoo.data.tokenizer import attach_tokenizers
from zoo_ctc.ctc import Ctc
from zoo_ctc.ctc_greedy import CtcGreedy
from zoo_sampling.greedy import Greedy
from zoo_sampling.no_repeat_ngram import NoRepeatNgram


def compose(**changes: Any) -> zoo.Model:
    model = {
        "type": "ctc-recogniser",
        "source": {"type": "token", "vocab": 6, "dim": 4},
        "encoder": {"type": "gru", "hidden": 3, "bidirectional": True},
        "vocab": 5,
    }
    spec = {"zoo": 1, "name": "test", "model": model | changes, "sampler": "ctc-greedy"}
    return zoo.compose(spec).eval()


def test_logits_are_a_linear_map_of_the_encoder_states():
    model = compose()
    source = torch.tensor([[1, 2, 3, 4], [5, 1, 0, 0]])
    target = torch.tensor([[1, 2], [3, 0]])
    outputs = model({"source": source, "target": target})
    memory = model.encoder(model.source(source), source != 0)
    expected = memory.states @ model.out.weight.T + model.out.bias
    torch.testing.assert_close(outputs.logits, expected)
    assert outputs.mask.tolist() == (source != 0).tolist()
    assert outputs.targets.tolist() == [[1, 2], [3, 0]]
    assert outputs.target_mask.tolist() == [[True, True], [True, False]]


def test_another_padding_and_another_blank():
    model = compose(blank=4, padding=2)
    batch = model.example(20, 6, torch.Generator().manual_seed(0))
    assert set(batch["target"].flatten().tolist()) == {0, 1, 3}
    batch["target"][0] = torch.tensor([3, 0, 2])
    outputs = model(batch)
    assert outputs.target_mask[0].tolist() == [True, True, False]
    assert Ctc(blank=4)(outputs).isfinite()
    with torch.no_grad():
        model.out.bias.copy_(torch.tensor([0.0, 0.0, 99.0, 9.0, 0.0]))
    decoded = model.generate(batch, CtcGreedy(), max_length=3).tokens
    assert decoded[:, 0].tolist() == [[3]] * 20  # the padding is more probable, but not a label


def make_copying(model: zoo.Model) -> zoo.Model:
    """Set the weights so that the model outputs its input tokens, or the blank for token 5."""
    model.encoder = zoo.plugin.Blueprint.of(IdentityEncoder).build(input_dim=4)
    model.out = torch.nn.Linear(4, 5)
    with torch.no_grad():
        model.source.table.weight.copy_(torch.eye(6)[:, 1:5])
        model.out.weight.copy_(9 * torch.eye(5)[:, 1:])
        model.out.bias.copy_(torch.eye(5)[0])
    return model


class IdentityEncoder(zoo.plugin.Encoder):
    """Encoder that returns its inputs."""

    name = "same"

    def __init__(self, *, input_dim: zoo.plugin.FromParent[int]) -> None:
        super().__init__()
        self.output_dim = self.summary_dim = input_dim
        self.carry = {}

    def forward(self, inputs, mask):
        return zoo.plugin.Memory(inputs, mask, inputs[:, 0])


SOURCE = [[1, 1, 5, 1, 2, 4], [3, 3, 5, 0, 0, 0]]


def test_generate_truncates_to_max_length():
    model = make_copying(compose())
    batch = {"source": torch.tensor(SOURCE)}
    decoded = model.generate(batch, CtcGreedy(), max_length=9)
    assert decoded.tokens.tolist() == [[[1, 1, 2, 4]], [[3, 0, 0, 0]]]
    assert model.generate(batch, CtcGreedy(), max_length=2).tokens.shape == (2, 1, 2)


def test_align():
    model = make_copying(compose())
    batch = {"source": torch.tensor(SOURCE), "target": torch.tensor([[1, 1, 2, 4], [3, 0, 0, 0]])}
    alignment = model.align(batch)
    assert alignment.labels.tolist() == [[1, 1, 0, 1, 2, 4], [3, 3, 0, 0, 0, 0]]
    assert alignment.spans[0].tolist() == [[0, 2], [3, 4], [4, 5], [5, 6]]


def test_generate_from_ids_in_python_and_on_the_command_line(tmp_path):
    model = make_copying(compose())
    results = zoo.generate(model, [SOURCE[0], SOURCE[1][:3]])
    assert [ranked[0].tokens for ranked in results] == [[1, 1, 2, 4], [3]]

    path = zoo.save(compose(), tmp_path / "model.safetensors")
    result = CliRunner().invoke(app, ["generate", str(path), "1 2 3", "--ids"])
    assert result.exit_code == 0, result.output
    result = CliRunner().invoke(app, ["generate", str(path), "1 2", "--ids", "--sampler", "greedy"])
    assert isinstance(result.exception, ZooError)
    assert "ctc-greedy" in str(result.exception)
    result = CliRunner().invoke(app, ["generate", str(path), "1 2", "--ids", "--stream"])
    assert isinstance(result.exception, ZooError)
    assert "streaming" in str(result.exception)


def test_a_target_tokenizer_decodes_the_labels():
    tokenizers = pytest.importorskip("tokenizers")
    words = {word: index for index, word in enumerate(["<pad>", "a", "b", "c", "d"])}
    library = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="<pad>"))
    model = make_copying(compose())
    attach_tokenizers(model, {"target": library.to_str()})
    assert zoo.generate(model, SOURCE[:1])[0][0].text == "a a b d"
    words["e"] = 5
    larger = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="<pad>"))
    with pytest.raises(ZooError, match=r"target tokenizer has 6 tokens.*vocabulary has 5"):
        attach_tokenizers(model, {"target": larger.to_str()})


def test_token_samplers_and_frame_samplers_in_the_wrong_place_raise():
    model = compose()
    batch = model.example(2, 4)
    with pytest.raises(ZooError, match=r"'ctc-recogniser'.*ctc-greedy"):
        model.generate(batch, Greedy(), max_length=2)
    memory = zoo.plugin.Memory(torch.zeros(1, 2, 3), torch.ones(1, 2).bool(), torch.zeros(1, 3))
    inputs = zoo.plugin.GenerationInputs(None, memory, bos=1, eos=2, pad=0)
    request = zoo.plugin.DecodeRequest(sampler=CtcGreedy(), max_length=3)
    for loop in (zoo.plugin.decode, zoo.generation.stream_tokens):
        with pytest.raises(ZooError, match="sampler 'ctc-greedy' decodes all frames"):
            loop(inputs, request)


def test_unsupported_arguments_raise():
    model = compose()
    batch = model.example(2, 4)
    with pytest.raises(ZooError, match=r"'no-repeat-ngram'.*'ctc-greedy'"):
        model.generate(batch, CtcGreedy(), max_length=2, filters=[NoRepeatNgram(n=2)])
    with pytest.raises(ZooError, match=r"max_length.*0.*1"):
        model.generate(batch, CtcGreedy(), max_length=0)
    with pytest.raises(ZooError, match="target embedding"):
        model.get_embedding("target")
    with torch.no_grad():
        model.out.bias[0] = float("nan")
    with pytest.raises(ZooError, match="NaN"):
        model.generate(batch, CtcGreedy(), max_length=2)


def test_generate_from_ids_with_a_source_without_tokens_raises():
    source = {"type": "patches", "size": 2, "dim": 4}
    with pytest.raises(ZooError, match=r"does not take tokens.*'patches'"):
        zoo.generate(compose(source=source), [[1, 2]])


def test_invalid_label_ids_raise():
    with pytest.raises(SpecError, match=r"blank \(5\).*vocab \(5\)"):
        compose(blank=5)
    with pytest.raises(SpecError, match=r"vocab \(2\).*blank"):
        compose(vocab=2, padding=1)


def test_weight_names_and_shapes():
    names = {k: tuple(v.shape) for k, v in compose().state_dict().items() if "encoder" not in k}
    assert names == {
        "source.table.weight": (6, 4),
        "out.weight": (5, 6),
        "out.bias": (5,),
    }
