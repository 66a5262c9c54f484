"""Losses that compare all examples of a batch, which is divided into parts."""

import json

import pytest
import torch
from pairs_kit import make_model, make_pairs_spec
from training_kit import ROOT, read_log, torchrun, weights

import zoo
from zoo.training.local_step import LossModule
from zoo.training.processes import Processes
from zoo.training.setup import check_split
from zoo.training.step import GlobalStep

KINDS = ["sentence-encoder", "contrastive", "sigmoid-contrastive"]
RUNS = [  # two processes; a run with two numbers of steps is resumed
    {"name": "accumulated", "kind": "sentence-encoder", "accumulate": 3, "steps": [2, 4]},
    {"name": "towers", "kind": "contrastive", "accumulate": 1, "steps": [4]},
    {"name": "sharded", "kind": "sentence-encoder", "accumulate": 2, "steps": [4]},
]


def _make_step(folder, kind, parts, dropout=0.0):
    """Return the step of a process with accumulation, and a batch of its model."""
    spec = {"zoo": 1, "name": "tiny", "model": make_model(kind, dropout)}
    model = zoo.compose({**spec, "objective": "cross-entropy" if "-enc" in kind else kind})
    module = LossModule(model.double(), zoo.objective(model))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    processes = Processes(folder, device="cpu")
    step = GlobalStep(module, module, optimiser, processes, clip=None, accumulate=parts)
    processes.close()
    batch = model.example(7, 4, torch.Generator().manual_seed(1))
    return step, {key: tensor.clamp(min=1) for key, tensor in batch.items()}


def _split(batch, sizes):
    parts = {key: tensor.split(sizes) for key, tensor in batch.items()}
    return [{key: parts[key][n] for key in batch} if sizes[n] else None for n in range(len(sizes))]


def _gradients(model):
    return {name: weight.grad for name, weight in model.named_parameters()}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sizes", [[3, 2, 2], [1, 0, 6]])
def test_the_gradients_of_parts_are_those_of_the_whole_batch(tmp_path, kind, sizes):
    step, batch = _make_step(tmp_path, kind, len(sizes))
    expected = step.module(batch)
    expected.backward()
    gradients = {name: grad.clone() for name, grad in _gradients(step.model).items()}
    step.model.zero_grad()

    loss = step.whole.compute(_split(batch, sizes))

    torch.testing.assert_close(loss, expected.detach())
    torch.testing.assert_close(_gradients(step.model), gradients)


def test_dropout_is_the_same_when_a_part_is_computed_again(tmp_path):
    step, batch = _make_step(tmp_path, "sentence-encoder", 2, dropout=0.5)
    step.model.train()
    parts = _split(batch, [4, 3])
    torch.manual_seed(0)
    vectors = [step.model(part).extras for part in parts]
    following = torch.rand(3)
    whole = {key: torch.cat([each[key] for each in vectors]) for key in vectors[0]}
    step.model.complete_batch = lambda vectors: whole
    expected = step.module(batch)
    step.model.complete_batch = None
    expected.backward()
    gradients = {name: grad.clone() for name, grad in _gradients(step.model).items()}
    step.model.zero_grad()

    torch.manual_seed(0)
    loss = step.whole.compute(parts)

    torch.testing.assert_close(loss, expected.detach())
    torch.testing.assert_close(_gradients(step.model), gradients)
    assert torch.equal(torch.rand(3), following)


def test_buffers_are_updated_once_by_each_part(tmp_path):
    step, batch = _make_step(tmp_path, "contrastive", 2)
    norm = torch.nn.BatchNorm1d(8).double()
    embed = step.model.source.projection
    step.model.source.projection = torch.nn.Sequential(embed, norm)
    step.whole.compute(_split(batch, [4, 3]))
    assert norm.num_batches_tracked == 2
    step.model.source.projection = embed


def test_accumulated_training_equals_that_of_whole_batches(files, tmp_path):
    for count in (1, 3):
        spec = make_pairs_spec(files, "contrastive", accumulate=count)
        zoo.train(spec, output=tmp_path / str(count), device="cpu")
    _assert_equal_runs(tmp_path / "1", tmp_path / "3")


def _read_values(folder):
    """Return losses and norms by step, and the results of the last evaluation."""
    lines = read_log(folder)
    steps = {line["step"]: line for line in lines if "loss" in line}
    *_, evaluation = (line for line in lines if "validation_loss" in line)
    norms = [line.pop("gradient_norm") for line in steps.values()]
    return norms, [*steps.values(), evaluation]


def _assert_equal_runs(first, second):
    (norms, lines), (other_norms, other_lines) = map(_read_values, (first, second))
    assert norms == pytest.approx(other_norms, rel=1e-5)
    for line, other in zip(lines, other_lines, strict=True):
        assert line == pytest.approx(other, rel=0, abs=1e-6)
    found = weights(second / "model.safetensors")
    for name, tensor in weights(first / "model.safetensors").items():
        torch.testing.assert_close(found[name], tensor, rtol=0, atol=1e-6)


@pytest.fixture(scope="module")
def job(files, tmp_path_factory):
    """The folder of runs of two processes, and of one process with the same names."""
    folder = tmp_path_factory.mktemp("job")
    runs = [
        {
            **run,
            "parallel": "fsdp" if run["name"] == "sharded" else "ddp",
            "spec": make_pairs_spec(files, run["kind"], accumulate=run["accumulate"]),
        }
        for run in RUNS
    ]
    (folder / "runs.json").write_text(json.dumps(runs))
    process = torchrun(ROOT / "tests/kits/pairs_worker.py", folder / "runs.json", folder / "two")
    for run in RUNS:
        spec = make_pairs_spec(files, run["kind"])
        zoo.train(spec, output=folder / "one" / run["name"], device="cpu")
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    return folder


@pytest.mark.parametrize("name", [run["name"] for run in RUNS])
def test_two_processes_train_as_one(job, name):
    _assert_equal_runs(job / "one" / name, job / "two" / name)


def test_a_model_that_does_not_pass_its_vectors_on_is_not_divided():
    class Alone(type(zoo.compose("minilm-tiny"))):
        def whole_batch(self, vectors):
            return vectors

    model, objective = zoo.compose("minilm-tiny"), zoo.objective("minilm-tiny")
    check_split(model, objective, 2, 2)
    model.__class__ = Alone
    with pytest.raises(zoo.ZooError, match="'sentence-encoder' depends on all examples"):
        check_split(model, objective, 2, 2)
