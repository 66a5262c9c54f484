"""A third-party plugin fills the slots of concrete classes with its own subclasses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
import torch
from cli_kit import Shell
from plugin_kit import Site
from torch import nn

import zoo
from zoo.artifact import load, read_header, save
from zoo.errors import ArtifactError
from zoo.plugin import Attention, Blueprint
from zoo.registry.component_registry import ComponentRegistry
from zoo.spec.composition import compose
from zoo.spec.schema import spec_schema
from zoo.spec.spec import draft_spec
from zoo.testing import check
from zoo_transformer.norm import Norm

SOURCE = '''
from typing import Annotated, ClassVar, Literal

from pydantic import Field
from torch import nn

from zoo.plugin import Alignment, Attention, Blueprint, FromParent, Part, Scorer, hookimpl
from zoo_transformer.norm import Norm


class PlainNorm(Norm, Part):
    r"""LayerNorm without parameters.

    .. math:: y = (x - \\mu) / \\sigma

    Args:
        place: as for Norm.
        eps: added to the variance.

    Shapes:
        [B, T, D] -> [B, T, D].
    """

    name: ClassVar[str] = "plain-norm"
    version: ClassVar[int] = 3
    paper: ClassVar[str] = "Ba et al. 2016, Layer Normalization, arXiv:1607.06450"

    def __init__(
        self, *, place: Literal["post", "pre"] = "post", eps: Annotated[float, Field(gt=0)] = 0.1
    ) -> None:
        super().__init__(place=place, eps=eps)

    def build(self, width):
        return nn.LayerNorm(width, eps=self.eps, elementwise_affine=False)


class HalfAttention(Attention, Part):
    r"""Single-head attention whose context is scaled.

    .. math:: c_t = w \\sum_s \\alpha_{ts} v_s

    Args:
        query_dim: width of the queries.
        key_dim: width of the states.
        scorer: computes the scores.
        align: normalises the scores.
        weight: factor of the context, w.

    Shapes:
        query [B, T, query_dim], states [B, S, key_dim] -> context [B, T, key_dim].
    """

    name: ClassVar[str] = "half-attention"
    paper: ClassVar[str] = "Bahdanau et al. 2015, arXiv:1409.0473"

    def __init__(
        self,
        *,
        query_dim: FromParent[int],
        key_dim: FromParent[int],
        scorer: Blueprint[Scorer],
        align: Blueprint[Alignment],
        weight: float = 0.5,
    ) -> None:
        super().__init__(query_dim=query_dim, key_dim=key_dim, scorer=scorer, align=align)
        self.weight = weight

    def project_output(self, context):
        return self.weight * super().project_output(context)


@hookimpl
def zoo_components():
    return [PlainNorm, HalfAttention]
'''
ATTENTION = {"scorer": "dot", "align": "soft"}


def spec(norm: Any, attention: Any = ATTENTION) -> dict[str, Any]:
    encoder = {"type": "transformer", "layers": 1, "attention": attention, "norm": norm}
    model = {
        "type": "masked-lm",
        "source": {"type": "token", "vocab": 7, "dim": 4},
        "encoder": {**encoder, "feed_forward": {"hidden": 4}},
    }
    return {"zoo": 1, "name": "parts", "model": model}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    site = Site(tmp_path / "site", monkeypatch)
    site.add("zoo-parts", SOURCE, point="parts")
    return site


@pytest.fixture
def registry(site: Site) -> ComponentRegistry:
    return site.registry()


@pytest.mark.parametrize("norm", ["plain-norm", "parts:plain-norm", {"type": "plain-norm"}])
def test_type_selects_the_subclass(norm, registry):
    model = compose(spec(norm, {"type": "half-attention", **ATTENTION}), registry=registry)

    block = model.encoder.blocks[0]
    assert isinstance(block.attention, Attention)
    assert type(block.attention).__name__ == "HalfAttention"
    assert (block.attention_norm.eps, block.attention_norm.weight) == (0.1, None)
    assert model.spec["model"]["encoder"]["norm"] == {
        "type": "parts:plain-norm",
        "place": "post",
        "eps": 0.1,
    }
    states, mask = torch.randn(1, 3, 4), torch.ones(1, 3, dtype=torch.bool)
    plain = Blueprint.of(Attention, **block_params(model)).build(query_dim=4, key_dim=4)
    torch.testing.assert_close(
        block.attention(states, states).context, 0.5 * plain(states, states).context
    )
    assert model.encoder(states, mask).states.isfinite().all()


def block_params(model: zoo.Model) -> dict[str, Any]:
    return {name: Blueprint.of(type(part)) for name, part in (
        ("scorer", model.encoder.blocks[0].attention.scorers.first),
        ("align", model.encoder.blocks[0].attention.align),
    )}  # fmt: skip


def test_without_type_the_slot_builds_its_own_class(registry):
    model = compose(spec({"eps": 0.25}), registry=registry)

    assert isinstance(model.encoder.blocks[0].attention_norm, nn.LayerNorm)
    assert model.encoder.blocks[0].attention_norm.weight is not None
    assert "type" not in model.spec["model"]["encoder"]["norm"]
    assert type(model.encoder.blocks[0].attention) is Attention


@pytest.mark.parametrize(
    ("norm", "message"),
    [
        ("{type: plain-nrm}", "no Norm named 'plain-nrm'; did you mean 'plain-norm'? (available: "),
        ("plain-nrm", "no Norm named 'plain-nrm'; did you mean 'plain-norm'?"),
        ("{type: dot}", "'dot' is a scorer, but this slot takes a Norm (available: plain-norm)"),
        ("{type: half-attention}", "'half-attention' is a part, but this slot takes a Norm"),
        ("{type: 3}", "should be the name of a Norm, but is 3"),
        ("[1]", "should be a mapping, but is a list"),
        ("{type: plain-norm, epz: 1.0}", "unknown key 'epz'; did you mean 'eps'?"),
        ("{type: plain-norm, eps: 0.0}", "is 0.0, but should be greater than 0"),
    ],
)
def test_errors_have_the_line_and_a_suggestion(norm, message, registry, tmp_path):
    file = tmp_path / "spec.yaml"
    file.write_text(
        "zoo: 1\nname: parts\nmodel:\n  type: masked-lm\n"
        "  source: {type: token, vocab: 7, dim: 4}\n  encoder:\n    type: transformer\n"
        "    layers: 1\n    attention: {scorer: dot, align: soft}\n"
        f"    feed_forward: {{hidden: 4}}\n    norm: {norm}\n"
    )

    (problem,) = draft_spec(file, registry=registry).problems

    assert message in problem.message
    assert problem.place is not None
    assert problem.place.line == 11
    assert problem.path.startswith("model.encoder.norm")


def test_the_json_schema_accepts_parts_in_their_slots_only(registry):
    validator = jsonschema.Draft202012Validator(spec_schema(registry))
    validator.check_schema(validator.schema)
    half = {"type": "half-attention", **ATTENTION, "weight": 0.25}
    for valid in (spec("plain-norm"), spec({"type": "parts:plain-norm", "eps": 1.0}, half)):
        validator.validate(valid)
    validator.validate(spec({"eps": 1.0}))
    for invalid in (spec("half-attention"), spec({"type": "plain-norm", "kind": "rms"})):
        with pytest.raises(jsonschema.ValidationError):
            validator.validate(invalid)


def test_saved_models_name_the_plugin_and_load_with_it(registry, tmp_path):
    data = spec({"type": "plain-norm", "eps": 0.5}, {"type": "half-attention", **ATTENTION})
    model = compose(data, registry=registry)
    path = save(model, tmp_path / "model.safetensors")

    again = load(path, registry=registry)

    rows = {row["name"]: row for row in read_header(path).providers if row["kind"] == "part"}
    assert set(rows) == {"plain-norm", "half-attention"}
    norm = rows["plain-norm"]
    assert (norm["plugin"], norm["distribution"], norm["version"]) == ("parts", "zoo-parts", 3)
    batch = model.example(2, 3, torch.Generator().manual_seed(0))
    batch["target"] = batch["source"]
    assert torch.equal(again(batch).logits, model.eval()(batch).logits)
    with pytest.raises(
        ArtifactError, match=r"part 'half-attention'.*pip install 'zoo-parts==1\.2'"
    ):
        load(path)


@pytest.mark.slow
def test_the_command_line_lists_and_shows_parts(site, tmp_path):
    shell = Shell(tmp_path, site.folder)

    listed = shell.run("list", "--kind", "part").stdout
    shown = shell.run("show", "plain-norm").stdout
    slots = shell.run("show", "transformer").stdout

    assert "plain-norm" in listed
    assert "half-attention" in listed
    assert "part, version 3" in shown
    assert "for slots of Norm" in shown
    assert "or a part or null" in " ".join(slots.split())


def test_parts_satisfy_the_laws(registry):
    for entry in registry.components("part"):
        passed = {outcome.law for outcome in check(entry.cls) if outcome.status == "passed"}
        assert {"documented", "valid-schema", "parent-values"} <= passed
        modules = {"seeded-init", "meta-device", "reset-parameters"}
        has_weights = issubclass(entry.cls, nn.Module) and entry.name != "plain-norm"
        assert modules <= passed or not has_weights


def test_a_part_without_a_class_is_rejected(site):
    site.add(
        "zoo-lonely",
        "from zoo.plugin import Part, hookimpl\n"
        "class Lonely(Part):\n    name = 'lonely'\n"
        "@hookimpl\ndef zoo_components():\n    return [Lonely]\n",
    )

    (plugin,) = (p for p in site.registry().plugins if p.name == "zoo-lonely")

    message = "Lonely is a part, but does not subclass the class of a slot, such as Attention"
    assert plugin.errors == [message]


def test_a_model_with_an_unregistered_subclass_has_no_spec():
    class MyNorm(Norm):
        """A norm that no plugin registers."""

    model = compose(spec(Blueprint.of(MyNorm)))

    assert model.spec is None
