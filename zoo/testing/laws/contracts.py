"""Laws of the declarations by which the parts of a spec are checked against its model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from zoo.errors import ZooError
from zoo.generation import DecodeRequest, decode
from zoo.interfaces import (
    Batch,
    FrameSampler,
    GenerationInputs,
    Model,
    Objective,
    OutputRequirement,
    Outputs,
    OutputSchema,
    Sampler,
    Samples,
)
from zoo.interfaces.contracts import find_targets
from zoo.testing.configuration import Configuration
from zoo.testing.law import Law, NotApplicable
from zoo.testing.laws.helpers import (
    BestLabels,
    build_objective,
    compose_model,
    example_batch,
    randn,
    random_memory,
)
from zoo.testing.tiny import TinyDecoder, TinyEmbedding, TinySampler

SAMPLERS: dict[str, Sampler] = {"step": TinySampler(), "frame": BestLabels()}


def declared_outputs(config: Configuration) -> None:
    """The outputs on the example contain what `output_schema` declares, and nothing else."""
    model = compose_model(config).train()
    schema = model.output_schema()
    if schema is None:
        raise NotApplicable("it declares no output_schema")
    outputs = model(example_batch(model))
    _check_schema(outputs, schema, "")
    torch.autograd.backward((outputs.logits * randn(*outputs.logits.shape)).sum())
    untrained = [name for name, p in model.named_parameters() if p.grad is None]
    if schema.trained_by:
        assert untrained, "trained_by is declared, but the logits give every parameter a gradient"
    assert schema.trained_by or not untrained, (
        f"the logits give no gradient to {', '.join(untrained)}, but trained_by is not declared"
    )


def independent_items(config: Configuration) -> None:
    """The logits of an item do not depend on the other items of the batch, unless `in_batch` is
    declared."""
    model = compose_model(config)
    schema = model.output_schema()
    if schema is None:
        raise NotApplicable("it declares no output_schema")
    batch = example_batch(model)
    expected, again = (_seeded_logits(model, batch, seed) for seed in (0, 1))
    if not torch.equal(expected, again):
        raise NotApplicable("it samples in evaluation mode")
    alone = _seeded_logits(model, {key: tensor[:1] for key, tensor in batch.items()}, 0)
    # Matrix products of other batch sizes can be rounded differently.
    tolerance = 1e-4 * max(1.0, expected.abs().max().item())
    dependent = alone.shape[1:] != expected.shape[1:] or bool(
        (alone - expected[:1]).abs().max() > tolerance
    )
    assert dependent == schema.in_batch, (
        f"in_batch is {schema.in_batch}, but the logits of an item "
        f"{'depend' if dependent else 'do not depend'} on other items"
    )


def _seeded_logits(model: Model, batch: Batch, seed: int) -> Tensor:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        outputs: Outputs = model(batch)
        return outputs.logits


def _check_schema(outputs: Outputs, schema: OutputSchema, where: str) -> None:
    found = find_targets(outputs)
    expected = "multi-label" if schema.targets == "value" else schema.targets  # equal shapes
    assert found == expected, f"targets{where} are '{found}', not '{schema.targets}'"
    rows = outputs.logits.shape[1]
    assert rows == 1 or schema.logits != "item", f"logits{where} have {rows} rows for each item"
    sampled = outputs.samples is not None
    assert sampled == schema.samples, f"samples{where} is {schema.samples}, but found {sampled}"
    for what, names, declared in (
        ("extras", set(outputs.extras), set(schema.extras)),
        ("auxiliary", set(outputs.auxiliary), set(schema.auxiliary)),
    ):
        differ = (declared - names - set(schema.optional)) | (names - declared)
        assert not differ, f"{what}{where} declared and found differ in {', '.join(sorted(differ))}"
    for name, part in outputs.auxiliary.items():
        _check_schema(part, schema.auxiliary[name], f" of head '{name}'")


def generates_as_declared(config: Configuration) -> None:
    """The model generates in the ways that `output_schema` declares, and raises for the others."""
    model = compose_model(config)
    schema = model.output_schema()
    if schema is None:
        raise NotApplicable("it declares no output_schema")
    assert bool(schema.decoding) == (model.generation_input is not None), (
        f"decoding is {schema.decoding}, but generation_input is {model.generation_input}"
    )
    for way, sampler in SAMPLERS.items():
        try:
            model.generate(example_batch(model), sampler, max_length=2)
            generated = True
        except ZooError:
            generated = False
        assert generated == (way in schema.decoding), (
            f"decoding is {schema.decoding}, but generation by '{way}' "
            f"{'works' if generated else 'fails'}"
        )


def decodes_as_declared(config: Configuration) -> None:
    """The sampler decodes in the way that `decoding` declares: steps of a decoder, or frames."""
    sampler = config.build()
    if sampler.decoding == "frame":
        logprobs = randn(2, 3, 4).log_softmax(dim=-1)
        mask = torch.ones(2, 3, dtype=torch.bool)
        assert isinstance(sampler, FrameSampler), "decoding is 'frame', but not a FrameSampler"
        sampler.decode_frames(logprobs, mask, blank=1, pad=0)
    elif sampler.decoding == "step":
        decoder = TinyDecoder(embedding=TinyEmbedding(), summary_dim=4).double()
        inputs = GenerationInputs(decoder, random_memory(6, 4), bos=1, eos=2, pad=0)
        try:
            decode(inputs, DecodeRequest(sampler=sampler, max_length=2))
        except ZooError as error:
            message = f"decoding is 'step', but the decoding loop raises: {error}"
            raise AssertionError(message) from None
    else:
        raise NotApplicable(f"decoding is '{sampler.decoding}', which only its models support")


def declared_requirement(config: Configuration) -> None:
    """Outputs with only what `required_outputs` declares suffice, and all of it is needed."""
    objective: Objective = build_objective(config).train()
    requirement = objective.required_outputs()
    if not requirement.is_declared:
        raise NotApplicable("it declares no required_outputs")
    for outputs in objective.examples():
        minimal = _reduce(outputs, requirement)
        try:
            loss = objective(minimal)
        except Exception as error:
            raise AssertionError(f"needs more than is declared: {error}") from None
        assert not loss.isnan(), "the loss of outputs with only what is declared is NaN"
        for name, lacking in _remove_each(minimal, requirement):
            for call in (objective, objective.forward):
                try:
                    call(lacking)
                except Exception:
                    continue
                raise AssertionError(f"'{name}' is declared, but the loss does not need it")
    if requirement.uses is not None:
        _check_samples(objective, minimal, "samples" in requirement.uses)


def _reduce(outputs: Outputs, requirement: OutputRequirement) -> Outputs:
    """Return the outputs with only what is declared."""
    return Outputs(
        outputs.logits,
        outputs.targets,
        outputs.mask,
        target_mask=outputs.target_mask if requirement.targets == "sequence" else None,
        extras={n: t for n, t in outputs.extras.items() if n in requirement.extras},
        auxiliary={
            name: _reduce(part, requirement.auxiliary[name])
            for name, part in outputs.auxiliary.items()
            if name in requirement.auxiliary
        },
    )


def _remove_each(outputs: Outputs, requirement: OutputRequirement) -> Iterator[tuple[str, Outputs]]:
    if requirement.targets == "sequence":
        yield "targets", replace(outputs, target_mask=None)
    for name in requirement.extras:
        extras = {other: t for other, t in outputs.extras.items() if other != name}
        yield name, replace(outputs, extras=extras)
    for name in requirement.auxiliary:
        if name not in requirement.optional:
            parts = {other: part for other, part in outputs.auxiliary.items() if other != name}
            yield name, replace(outputs, auxiliary=parts)


def _check_samples(objective: Objective, outputs: Outputs, declared: bool) -> None:
    logprob = -randn(*outputs.mask.shape).abs().requires_grad_()
    samples = Samples(logprob, torch.zeros_like(outputs.mask, dtype=logprob.dtype))
    loss = objective(replace(outputs, samples=samples))
    used = False
    if loss.requires_grad:
        (gradient,) = torch.autograd.grad(loss, logprob, allow_unused=True)
        used = gradient is not None and bool(gradient.abs().sum() > 0)
    assert used == declared, (
        f"the loss {'uses' if used else 'does not use'} samples, unlike declared in 'uses'"
    )


MODEL_LAWS = (
    Law("declared-outputs", declared_outputs),
    Law("independent-items", independent_items),
    Law("declared-decoding", generates_as_declared),
)
SAMPLER_LAWS = (Law("declared-decoding", decodes_as_declared),)
OBJECTIVE_LAWS = (Law("declared-requirement", declared_requirement),)
