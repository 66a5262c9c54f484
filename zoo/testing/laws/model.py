"""Laws of models."""

from __future__ import annotations

import tempfile
from itertools import takewhile
from pathlib import Path

import torch
from torch import Tensor

from zoo.artifact import load, save
from zoo.errors import ZooError
from zoo.generation.pipeline import generate
from zoo.interfaces import BatchSchema, GenerationOutput, Model, Sampler
from zoo.interfaces.embedding import to_eos_ids
from zoo.testing.configuration import Configuration
from zoo.testing.law import Law, NotApplicable
from zoo.testing.laws.autocast import MODEL_LAWS as AUTOCAST_LAWS
from zoo.testing.laws.batches import MODEL_LAWS as BATCH_LAWS
from zoo.testing.laws.contracts import MODEL_LAWS as CONTRACT_LAWS
from zoo.testing.laws.helpers import (
    BestLabels,
    assert_close,
    assert_equal,
    compose_model,
    example_batch,
)
from zoo.testing.tiny import TinySampler


def node_permutation(config: Configuration) -> None:
    """For models of graphs, whose batch has edges, pairs of indices of nodes: permuting the nodes
    permutes the logits of the nodes, and does not change the logits of the graph."""
    model = compose_model(config)
    schema = model.batch_schema() or {}
    edges = (field for field in schema.values() if len(field.dims or ()) == 3)
    dim = next((field.below for field in edges if isinstance(field.below, str)), None)
    if dim is None:
        raise NotApplicable("its batch has no edges")
    batch = example_batch(model)
    nodes = next(
        batch[key].shape[field.dims.index(dim)]
        for key, field in schema.items()
        if key in batch and field.dims and dim in field.dims
    )
    order = torch.arange(nodes).roll(2).flip(0)  # the old index of each new node
    expected, permuted = model(batch), model(_permute(schema, batch, dim, order))
    logits = expected.logits[:, order] if expected.logits.shape[1] == nodes else expected.logits
    assert_close(permuted.logits, logits, "logits of permuted nodes", tolerance=1e-4)


def _permute(
    schema: BatchSchema, batch: dict[str, Tensor], dim: str, order: Tensor
) -> dict[str, Tensor]:
    """Return the same graphs with their nodes in another order."""
    permuted = {}
    for key, tensor in batch.items():
        field = schema[key]
        for axis, name in enumerate(field.dims or ()):
            tensor = tensor.index_select(axis, order) if name == dim else tensor
        if field.below == dim:
            tensor = order.argsort()[tensor.clamp(min=0)].where(tensor >= 0, tensor)
        permuted[key] = tensor
    return permuted


GRAPH_LAWS = (Law("node-permutation", node_permutation),)


def runs_example(config: Configuration) -> None:
    """The model runs on its example; logits, targets and masks match, and outputs are finite."""
    model = compose_model(config)
    outputs = model(example_batch(model))
    steps = outputs.logits.shape[:-1]
    assert outputs.mask.shape == steps, "logits and mask do not match"
    if outputs.target_mask is not None:
        assert outputs.target_mask.shape == outputs.targets.shape, (
            "targets and target_mask have different shapes"
        )
        assert outputs.targets.shape[0] == steps[0], "logits and targets have different batch sizes"
    else:
        allowed = (steps, outputs.logits.shape)
        assert outputs.targets.shape in allowed, "logits and targets do not match"
    assert all(tensor.isfinite().all() for tensor in outputs.differentiable()), (
        "an output is not finite"
    )


def save_load(config: Configuration) -> None:
    """A saved and loaded model has bitwise equal weights and logits; frozen weights stay frozen."""
    model = compose_model(config)
    with tempfile.TemporaryDirectory() as folder:
        path = save(model, Path(folder) / "model.safetensors")
        again = load(path, registry=config.registry).eval()
    state = again.state_dict()
    for name, weight in model.state_dict().items():
        assert_equal(state[name], weight, f"weight {name}")
    for name, parameter in again.named_parameters():
        same = parameter.requires_grad == model.get_parameter(name).requires_grad
        assert same, f"{name} is frozen in one of both models only"
    batch = example_batch(model)
    assert_equal(again(batch).logits, model(batch).logits, "a logit")


def restored_state(config: Configuration) -> None:
    """State that changes in training is in parameters and persistent buffers: with those of a
    model after forward passes and evaluations, a new one computes the same outputs."""
    model, restored = compose_model(config), compose_model(config)
    batch = example_batch(model)
    model.train()
    for is_best in (True, False):
        model(batch)
        model.observe_validation(is_best=is_best)
    restored.load_state_dict(model.state_dict())
    for training in (True, False):
        outputs = []
        for each in (model, restored):
            torch.manual_seed(0)
            outputs.append(each.train(training)(batch).logits)
        assert_equal(outputs[1], outputs[0], "a logit of the restored model")


def declared_phases(config: Configuration) -> None:
    """`observe_validation` returns whether it changes the outputs."""
    model = compose_model(config)
    batch = example_batch(model)
    logits = model(batch).logits
    for is_best in (True, False, False):
        declared = model.observe_validation(is_best=is_best)
        before, logits = logits, model(batch).logits
        changed = not torch.equal(before, logits)
        assert changed == declared, (
            f"observe_validation returns {declared}, but the logits "
            f"{'change' if changed else 'do not change'}"
        )


def parameter_gradients(config: Configuration) -> None:
    """Every parameter has a gradient from the outputs."""
    model = compose_model(config).train()
    generator = torch.Generator().manual_seed(1)
    outputs = [
        tensor for tensor in model(example_batch(model)).differentiable() if tensor.requires_grad
    ]
    loss = sum(
        (tensor * torch.randn(tensor.shape, generator=generator)).sum() for tensor in outputs
    )
    torch.autograd.backward(loss)
    missing = [
        n for n, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0
    ]
    assert not missing, f"no gradient for {', '.join(missing)}"


def compiles(config: Configuration) -> None:
    """The forward pass compiles without graph breaks and gives the same logits."""
    model = compose_model(config)
    batch = example_batch(model)
    torch.compiler.reset()
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    assert_close(compiled(batch).logits, model(batch).logits, "logits when compiled", 1e-5)


def matches_gpu(config: Configuration) -> None:
    """Logits on the CPU and on the GPU agree within tolerance."""
    if not torch.cuda.is_available():
        raise NotApplicable("torch finds no CUDA device")
    model = compose_model(config)
    batch = example_batch(model)
    logits = model(batch).logits
    on_gpu = model.to("cuda")({key: value.to("cuda") for key, value in batch.items()}).logits
    tolerance = 1e-4 * max(1.0, logits.abs().max().item())
    assert_close(on_gpu.cpu(), logits, "logits on the GPU", tolerance)


def same_generation(config: Configuration) -> None:
    """`zoo.generate` returns the tokens that `Model.generate` returns for the same token IDs, up to
    the end token."""
    model = compose_model(config)
    names = ("prepare_generation", "generate")
    if all(getattr(type(model), name) is getattr(Model, name) for name in names):
        assert model.generation_input is None, (
            "generation_input is set, but prepare_generation is not implemented"
        )
        raise NotApplicable("it does not support generation")
    assert model.generation_input in ("source", "prompt"), (
        "generation_input is not 'source' or 'prompt', so 'zoo generate' rejects the model"
    )
    side = "source" if model.generation_input == "source" else "target"
    if not model.vocab_size(side):
        raise NotApplicable(f"its {side} embedding does not take tokens")
    tokens = model.get_embedding(side).example(2, 3, torch.Generator().manual_seed(0))
    if side == "target" and model.bos is not None:
        tokens = torch.cat([torch.full_like(tokens[:, :1], model.bos), tokens], dim=1)
    sampler, output, eos_ids = _generate(model, {model.generation_input: tokens})
    results = generate(model, tokens.tolist(), sampler=sampler, max_length=4)
    for row, hypotheses in zip(output.tokens[:, 0].tolist(), results, strict=True):
        expected = list(takewhile(lambda token: token not in eos_ids, row))
        found = hypotheses[0].tokens
        assert found == expected, f"zoo.generate returns {found}, model.generate {expected}"


def _generate(
    model: Model, batch: dict[str, Tensor]
) -> tuple[Sampler, GenerationOutput, tuple[int, ...]]:
    """Return the sampler that the model supports, its output and the end tokens."""
    sampler: Sampler
    try:
        inputs = model.prepare_generation(batch)
    except ZooError:  # it decodes all frames in parallel
        sampler, eos_ids = BestLabels(), to_eos_ids(model.eos)
    else:
        sampler, eos_ids = TinySampler(), inputs.eos_ids
        assert inputs.prompt is None or model.bos is not None or inputs.bos in eos_ids, (
            f"prompts start with token {inputs.bos}, but the attribute bos is not set"
        )
    return sampler, model.generate(batch, sampler, max_length=4), eos_ids


LAWS = (
    Law("runs-example", runs_example),
    Law("save-load", save_load),
    Law("restored-state", restored_state),
    Law("declared-phases", declared_phases),
    Law("parameter-gradients", parameter_gradients),
    Law("compiles", compiles),
    Law("matches-gpu", matches_gpu),
    Law("same-generation", same_generation),
    *AUTOCAST_LAWS,
    *CONTRACT_LAWS,
    *BATCH_LAWS,
    *GRAPH_LAWS,
)
