"""Models behave as torch modules: hooks run on every submodule, and FSDP2 can shard them."""

import re
from collections.abc import Iterator
from types import NoneType

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import zoo
from zoo import SpecError
from zoo.acceleration import is_accelerated
from zoo.interfaces.signature import parameters
from zoo.plugin import Attention, MissingExtra, RecordsAttention
from zoo.registry.component_registry import default_registry
from zoo.testing.configuration import configurations

MAX_PARAMETERS = 200_000
# Submodules that no forward pass of the spec calls, and why.
NOT_CALLED = {
    ("ngram-lm", "embedding"): "an n-gram model uses only the vocabulary size",
    ("ngram-lm", "embedding.table"): "an n-gram model uses only the vocabulary size",
}


def compose_small() -> Iterator[tuple[str, zoo.Model]]:
    """Yield each shipped spec of at most MAX_PARAMETERS parameters and its model."""
    for name in sorted(default_registry().specs):
        with torch.device("meta"):
            model = zoo.load_spec(name).sections.model.build()
        if sum(parameter.numel() for parameter in model.parameters()) <= MAX_PARAMETERS:
            yield name, zoo.compose(name)


def example(model: zoo.Model) -> dict[str, Tensor]:
    return model.example(2, 5, torch.Generator().manual_seed(0))


def callable_modules(model: nn.Module) -> dict[str, nn.Module]:
    """All submodules with a forward of their own, unlike ModuleList."""
    return {n: m for n, m in model.named_modules() if type(m).forward is not nn.Module.forward}


def is_unused_dropout(module: nn.Module) -> bool:
    """Dropout between layers is not called if there is one layer."""
    return isinstance(module, nn.Dropout) and module.p == 0


def test_forward_hooks_run_on_every_submodule():
    missing, specs = [], 0
    for spec, model in compose_small():
        modules, called = callable_modules(model), set()
        for name, module in modules.items():
            module.register_forward_hook(lambda *_, name=name, called=called: called.add(name))
        model(example(model))
        missing += [
            f"{spec}: {name}"
            for name in modules.keys() - called
            if (spec, name) not in NOT_CALLED and not is_unused_dropout(modules[name])
        ]
        specs += 1
    assert specs >= 30
    assert not missing, "forward does not call " + ", ".join(sorted(missing))


@pytest.mark.parametrize("spec", ["bahdanau-reversal", "transformer-tiny", "gat-tiny"])
def test_hooks_do_not_change_the_outputs(spec):
    model = zoo.compose(spec).eval()
    expected = model(example(model)).logits
    for module in callable_modules(model).values():
        module.register_forward_hook(lambda *_: None)

    torch.testing.assert_close(model(example(model)).logits, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("spec", "shapes"),
    [
        # one call per step: query [B, 1, D] and context [B, 1, D]
        ("bahdanau-reversal", {"decoder.attention": [((2, 1, 64), (2, 1, 64))] * 6}),
        (
            "transformer-tiny",
            {
                "encoder.blocks.0.attention": [((2, 5, 16), (2, 5, 16))],
                "encoder.blocks.1.attention": [((2, 5, 16), (2, 5, 16))],
                "decoder.blocks.0.attention": [((2, 6, 16), (2, 6, 16))],
                "decoder.blocks.0.cross": [((2, 6, 16), (2, 6, 16))],
                "decoder.blocks.1.attention": [((2, 6, 16), (2, 6, 16))],
                "decoder.blocks.1.cross": [((2, 6, 16), (2, 6, 16))],
            },
        ),
    ],
)
def test_hooks_on_attention_receive_queries_and_contexts(spec, shapes):
    model = zoo.compose(spec)
    names = {m: name for name, m in model.named_modules() if isinstance(m, Attention)}
    log = {name: [] for name in names.values()}

    def record_shapes(module, args, output):
        context = output[0] if isinstance(output, tuple) else output
        log[names[module]].append((tuple(args[0].shape), tuple(context.shape)))

    for module in names:
        module.register_forward_hook(record_shapes)
    model(example(model))

    assert log == shapes


@pytest.mark.parametrize("spec", ["bahdanau-reversal", "transformer-tiny", "gat-tiny"])
def test_backward_hooks_run_on_every_attention(spec):
    model = zoo.compose(spec)
    names = {m: name for name, m in model.named_modules() if isinstance(m, RecordsAttention)}
    gradients = {name: [] for name in names.values()}

    def record_gradient(module, grad_input, grad_output):
        gradients[names[module]].append(grad_output[0].abs().sum().item())

    for module in names:
        module.register_full_backward_hook(record_gradient)
    batch = {k: v.requires_grad_(v.is_floating_point()) for k, v in example(model).items()}
    model(batch).logits.square().sum().backward()

    assert gradients
    for name, sums in gradients.items():
        assert sums, f"the hook on {name} was not called"
        assert min(sums) > 0, name


@pytest.fixture
def process_group(tmp_path) -> Iterator[None]:
    """A gloo process group with this process only."""
    dist.init_process_group(
        "gloo", store=dist.FileStore(str(tmp_path / "store"), 1), rank=0, world_size=1
    )
    yield
    dist.destroy_process_group()


def train_step(model: zoo.Model) -> list[float]:
    """Return the loss before and after a step of SGD."""
    objective = zoo.load_spec("transformer-tiny").sections.objective.build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(2):
        loss = objective(model(example(model)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


# torch warns about outputs that are views; they are not modified in place.
@pytest.mark.filterwarnings("ignore:FSDP2-wrapped module:UserWarning")
@pytest.mark.parametrize(
    ("spec", "blocks"),
    [
        ("transformer-tiny", r"(encoder|decoder)\.blocks\.\d+"),
        ("bahdanau-reversal", "encoder|decoder"),
    ],
)
@pytest.mark.parametrize("accelerated", [False, True])
def test_fsdp_trains_with_the_same_loss(spec, blocks, accelerated, process_group):
    expected = train_step(zoo.compose(spec))

    model = zoo.accelerate(zoo.compose(spec), enabled=accelerated)
    mesh = init_device_mesh("cpu", (1,))
    sharded = [m for name, m in model.named_modules() if re.fullmatch(blocks, name)]
    for block in sharded:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    losses = train_step(zoo.accelerate(model))

    assert len(sharded) >= 2
    assert any(map(is_accelerated, sharded)) is accelerated
    assert losses[1] < losses[0]
    assert losses == pytest.approx(expected, rel=1e-5)


MODULES = [entry for entry in default_registry().components() if issubclass(entry.cls, nn.Module)]


@pytest.mark.parametrize("entry", MODULES, ids=lambda entry: f"{entry.kind}-{entry.name}")
def test_repr_shows_every_integer_parameter(entry):
    """Except those whose name is that of a submodule or a tensor."""
    config = next(configurations(entry.cls))
    try:
        part = config.build()
    except SpecError as error:
        if isinstance(error.__cause__, MissingExtra):
            pytest.skip(str(error.__cause__))
        raise
    values = {**config.params, **config.parent_values()}
    shown = part.extra_repr()
    missing = [
        parameter.name
        for parameter in parameters(entry.cls)
        if type(values.get(parameter.name, parameter.default)) is int
        and not isinstance(getattr(part, parameter.name, 0), (nn.Module, Tensor, NoneType))
        and f"{parameter.name}=" not in shown
    ]
    assert not missing, f"extra_repr does not show {', '.join(missing)}: {shown!r}"
