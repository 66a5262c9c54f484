"""Values that a part sets itself, such as the bias of a gate, are kept by every initialiser."""

import pytest
import torch

import zoo
from zoo.registry.component_registry import default_registry
from zoo.spec.initialisation import find_weights, initialise
from zoo_bahdanau.normalised_additive import NormalisedAdditive
from zoo_init.orthogonal import Orthogonal
from zoo_init.uniform import Uniform
from zoo_init.xavier_uniform import XavierUniform
from zoo_language.character_cnn import Highway
from zoo_language.layer_mix import LayerMix
from zoo_language.projected_lstm import ProjectedLSTM
from zoo_ram.baseline import Baseline

TINY = sorted(name for name in default_registry().specs if name.endswith("-tiny"))


@pytest.mark.parametrize(
    "initialiser", [XavierUniform(), Orthogonal(vectors="zeros"), Uniform()], ids=lambda i: i.name
)
@pytest.mark.parametrize(
    ("build", "kept"),
    [
        (lambda: ProjectedLSTM(2, 3), ["bias"]),
        (lambda: Highway(3), ["gate.bias"]),
        (lambda: LayerMix(3), ["weights", "gamma"]),
        (lambda: NormalisedAdditive(query_dim=2, key_dim=3), ["v", "g"]),
        (lambda: Baseline(3, "relu"), ["bias"]),
        (lambda: Baseline(3, "linear"), []),
    ],
)
def test_parts_keep_the_values_that_they_set(build, kept, initialiser):
    part = build()
    before = {name: parameter.clone() for name, parameter in part.named_parameters()}
    initialise(part, initialiser)
    after = dict(part.named_parameters())
    assert [name for name in after if torch.equal(after[name], before[name])] == kept


def _is_set(tensor):
    """Whether the values are one or two constants, not all 0."""
    return tensor.numel() > 2 and len(tensor.unique()) <= 2 and bool(tensor.any())


@pytest.mark.parametrize("spec", TINY)
def test_no_initialiser_changes_constants_of_a_shipped_model(spec):
    model = zoo.compose(spec, overrides=["init=null"])
    changed = [w.name for w in find_weights(model) if w.role not in ("norm", "special")]
    parameters = dict(model.named_parameters())
    assert [name for name in changed if _is_set(parameters[name])] == []
