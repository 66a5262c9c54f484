"""Reports: output shapes, parameters and bytes of the parts of a spec."""

import contextlib
import json
from typing import ClassVar

import pytest
import torch
from spec_kit import SPEC
from torch import Tensor, nn

import zoo
from zoo.errors import SpecError
from zoo.plugin import FromParent
from zoo.registry.component_registry import default_registry
from zoo.spec.composition import build_on_meta
from zoo.spec.report import build_report
from zoo.spec.spec import load_spec
from zoo_alignment.soft import Soft
from zoo_bahdanau.additive import Additive


class Mismatched(Additive):
    """Multiplies matrices of incompatible shapes."""

    name: ClassVar[str] = "mismatched"

    def score(self, query: Tensor, prepared: Tensor) -> Tensor:
        return query @ prepared


class Suppressing(zoo.plugin.Encoder):
    """Suppresses the error of its inner encoder and then raises its own."""

    name: ClassVar[str] = "suppressing"

    def __init__(
        self, *, input_dim: FromParent[int], inner: zoo.plugin.Blueprint[zoo.plugin.Encoder]
    ) -> None:
        super().__init__()
        self.inner = inner.build(input_dim=input_dim + 1)
        self.output_dim, self.summary_dim = self.inner.output_dim, self.inner.summary_dim
        self.carry = self.inner.carry

    def forward(self, inputs: Tensor, mask: Tensor) -> zoo.plugin.Memory:
        with contextlib.suppress(Exception):
            return self.inner(inputs, mask)
        raise ValueError("no result")


class NeedsValues(Soft):
    """Needs tensor values to run."""

    def forward(self, scores, mask=None, look=None):
        self.use_values(scores)
        return super().forward(scores, mask)

    def use_values(self, scores: Tensor) -> None:
        raise NotImplementedError


class ToList(NeedsValues):
    name: ClassVar[str] = "to-list"

    def use_values(self, scores: Tensor) -> None:
        scores.tolist()


class BooleanIndex(NeedsValues):
    name: ClassVar[str] = "boolean-index"

    def use_values(self, scores: Tensor) -> None:
        scores[scores > 0]


class Branch(NeedsValues):
    name: ClassVar[str] = "branch"

    def use_values(self, scores: Tensor) -> None:
        if (scores > 0).any():
            scores.sum()


class Item(NeedsValues):
    name: ClassVar[str] = "item"

    def use_values(self, scores: Tensor) -> None:
        scores.max().item()


class Buffered(Soft):
    """Has a buffer and parameters of several dtypes."""

    name: ClassVar[str] = "buffered"

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(10, dtype=torch.int64))
        self.gain = nn.Parameter(torch.ones(3, dtype=torch.float64))


COMPONENTS = [Mismatched, Suppressing, ToList, BooleanIndex, Branch, Item, Buffered]
REGISTRY = default_registry().with_components(COMPONENTS, plugin="third-party")


def write(tmp_path, *, scorer: str = "additive", align: str = "soft", encoder: str | None = None):
    text = SPEC.replace("SCORER", scorer).replace("ALIGN", align)
    if encoder:
        text = text.replace("{type: gru, hidden: 8}", encoder)
    file = tmp_path / "spec.yaml"
    file.write_text(text)
    return file


def parts(report) -> dict[str, dict]:
    return {part.path: part.as_json() for part in report.tree.walk()}


def size(model) -> tuple[int, int]:
    weights = sum(p.numel() for p in model.parameters())
    tensors = [*model.parameters(), *model.buffers()]
    return weights, sum(t.numel() * t.element_size() for t in tensors)


@pytest.mark.parametrize("name", ["bahdanau-reversal", "tiny", "buffered"])
def test_sizes_match_the_built_model(tmp_path, name):
    align = "buffered" if name == "buffered" else "soft"
    source = name if name == "bahdanau-reversal" else write(tmp_path, align=align)
    report = zoo.check(source, registry=REGISTRY)
    # Built without compose, which casts the weights.
    model = load_spec(source, registry=REGISTRY).sections.model.build()
    assert (report.parameters, report.bytes) == size(model)
    found = parts(report)
    assert found["model"]["parameters"] == report.parameters
    for path in ("encoder", "decoder", "decoder.attention", "decoder.attention.align"):
        part = model.get_submodule(path)
        counted = found[f"model.{path}"]
        assert (counted["parameters"], counted["bytes"]) == size(part)


def test_parts_are_listed_as_a_tree_with_their_plugins(tmp_path):
    report = zoo.check(write(tmp_path))
    found = parts(report)
    assert list(found) == [
        "model",
        "model.source",
        "model.encoder",
        "model.decoder",
        "model.decoder.attention",
        "model.decoder.attention.scorer",
        "model.decoder.attention.align",
    ]
    scorer = found["model.decoder.attention.scorer"]
    assert (scorer["kind"], scorer["type"], scorer["plugin"]) == ("scorer", "additive", "bahdanau")
    attention = found["model.decoder.attention"]
    assert (attention["kind"], attention["type"], attention["plugin"]) == (
        "attention",
        "Attention",
        None,
    )


def test_batch_source_and_target_dimensions_are_shown_as_letters(tmp_path):
    shapes = {path: part["shape"] for path, part in parts(zoo.check(write(tmp_path))).items()}
    assert shapes == {
        "model": "[B, T, 16]",
        "model.source": "[B, S, 4]",
        "model.encoder": "[B, S, 8]",
        "model.decoder": "[B, T, 16]",
        "model.decoder.attention": "[B, 1, 8]",
        "model.decoder.attention.scorer": "[B, 1, S]",
        "model.decoder.attention.align": "[B, 1, 1, S]",
    }


def test_parts_built_from_one_blueprint_are_one_node(tmp_path):
    one = parts(zoo.check(write(tmp_path)))
    file = write(tmp_path, scorer="additive, heads: 4")
    four = parts(zoo.check(file))
    assert one["model.source"]["count"] == 2  # source and target embeddings
    assert one["model.source"]["parameters"] == 2 * 16 * 4
    scorers = four["model.decoder.attention.scorer"]
    assert scorers["count"] == 4
    assert scorers["parameters"] == 4 * (4 * 128 + 4 * 128 + 128)


def test_a_report_serialises_to_json(tmp_path):
    report = zoo.check(write(tmp_path))
    data = json.loads(json.dumps(report.as_json()))
    assert data["ok"] is True
    assert (data["name"], data["parameters"]) == ("tiny", report.parameters)
    assert [part["path"] for part in data["parts"]] == [p.path for p in report.tree.walk()]


def single_problem(file):
    with pytest.raises(SpecError) as caught:
        zoo.check(file, registry=REGISTRY)
    (problem,) = caught.value.problems
    return problem


def test_a_part_whose_forward_fails_is_reported_with_its_place(tmp_path):
    problem = single_problem(write(tmp_path, scorer="mismatched"))
    assert problem.path == "model.decoder.attention.scorer"
    assert (problem.place.line, problem.place.column) == (10, 25)
    assert "RuntimeError: " in problem.message


def test_the_failing_part_is_reported_and_not_a_child_whose_error_it_suppressed(tmp_path):
    encoder = "{type: suppressing, inner: {type: gru, hidden: 8}}"
    problem = single_problem(write(tmp_path, encoder=encoder))
    assert problem.path == "model.encoder"
    assert "ValueError: no result" in problem.message


@pytest.mark.parametrize("align", ["to-list", "boolean-index", "branch", "item"])
def test_a_part_that_needs_tensor_values_passes_without_shapes(tmp_path, align):
    file = write(tmp_path, align=align)
    report = zoo.check(file, registry=REGISTRY)
    assert {part.shape for part in report.tree.walk()} == {None}
    assert report.parameters == zoo.check(write(tmp_path)).parameters
    model = zoo.compose(write(tmp_path, align=align), registry=REGISTRY)
    assert model(model.example(2, 3)).logits.shape == (2, 4, 16)


@pytest.mark.parametrize("scorer", ["additive", "mismatched"])
def test_tracing_restores_the_methods_of_the_model(tmp_path, scorer):
    spec = load_spec(write(tmp_path, scorer=scorer), registry=REGISTRY)
    tree = build_on_meta(spec)
    before = [set(vars(module)) for module in tree.part.modules()]
    with contextlib.suppress(SpecError):
        build_report(spec, tree)
    assert [set(vars(module)) for module in tree.part.modules()] == before
