"""The weights of a built model with their roles, and their initialisation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatchcase

from torch import nn

from zoo.errors import ZooError
from zoo.interfaces import ROLES, Component, Initialiser, Part, Role, Weight

_NORMS = (
    nn.LayerNorm,
    nn.GroupNorm,
    nn.RMSNorm,
    nn.modules.batchnorm._NormBase,
)
_CONVOLUTIONS = (nn.modules.conv._ConvNd,)
_RECURRENT = (nn.RNNBase, nn.RNNCellBase)


def initialise(model: nn.Module, initialiser: Initialiser) -> None:
    """Initialise the parameters of a model; those shared by several modules once."""
    for weight in find_weights(model):
        initialiser(weight)


def initialised_weights(model: nn.Module, initialiser: Initialiser) -> Iterator[Weight]:
    """Yield the weights of a model that an initialiser changes; adapters are attached later."""
    for weight in find_weights(model):
        if initialiser.changes(weight) and weight.kind != "adapter":
            yield weight


def model_weights(model: nn.Module) -> list[Weight]:
    """Return the weights that an optimiser updates: those that require a gradient, each once."""
    return [weight for weight in find_weights(model) if weight.tensor.requires_grad]


def find_weights(model: nn.Module) -> Iterator[Weight]:
    """Yield each floating-point parameter of a model with its role."""
    modules = dict(model.named_modules(remove_duplicate=False))
    declared = _declared_roles(modules)
    stacks: dict[str, str] = {}
    sizes: Counter[str] = Counter()
    for layers in _residual_layers(modules):
        stack = _enclosing_component(modules, layers[0])[0]
        stacks |= dict.fromkeys(layers, stack)
        sizes[stack] += _count_applications(modules, layers[0])
    uses: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        uses.setdefault(id(parameter), []).append(name)
    for name, parameter in model.named_parameters():
        if not parameter.is_floating_point():
            continue
        owner = name.rpartition(".")[0]
        names = uses[id(parameter)]
        roles = [declared.get(use) or _default_role(modules, use) for use in names]
        yield Weight(
            name,
            parameter,
            _shared_role(roles),
            kind=_enclosing_component(modules, owner)[1],
            num_residual=sizes[stacks[owner]] if owner in stacks else 0,
            padding=_padding_row(modules, names),
        )


def _declared_roles(modules: dict[str, nn.Module]) -> dict[str, Role]:
    """Return the roles in ``weight_roles`` by parameter name; an outer module takes precedence."""
    roles: dict[str, Role] = {}
    for prefix, module in modules.items():  # outer modules first
        for key, role in getattr(module, "weight_roles", {}).items():
            below = [
                name for name, _ in module.named_parameters() if f"{name}.".startswith(f"{key}.")
            ]
            known = hasattr(module, key.partition(".")[0])
            if role not in ROLES or not known:
                raise ZooError(
                    f"{type(module).__name__}.weight_roles has '{key}: {role}'; expected the name "
                    f"of a parameter or submodule, and one of {', '.join(ROLES)}"
                )
            for name in below:
                roles.setdefault(f"{prefix}.{name}" if prefix else name, role)
    return roles


def _residual_layers(modules: dict[str, nn.Module]) -> Iterator[list[str]]:
    """Yield the layers that each name in ``residual_layers`` matches; it may match none."""
    for prefix, module in modules.items():
        for key in getattr(module, "residual_layers", ()):
            inner = [name for name, _ in module.named_modules() if fnmatchcase(name, key)]
            if inner:
                yield [f"{prefix}.{name}" if prefix else name for name in inner]


def _count_applications(modules: dict[str, nn.Module], name: str) -> int:
    """Return how often a layer is applied, from ``residual_repeats`` of the modules around it."""
    count = 1
    while name:
        name = name.rpartition(".")[0]
        count *= getattr(modules[name], "residual_repeats", 1)
    return count


def _enclosing_component(modules: dict[str, nn.Module], name: str) -> tuple[str, str]:
    """Return the name and the kind of the innermost component that contains a module.

    A part belongs to the component around it.
    """
    while name and (not isinstance(modules[name], Component) or isinstance(modules[name], Part)):
        name = name.rpartition(".")[0]
    return name, getattr(modules[name], "kind", "model")


def _default_role(modules: dict[str, nn.Module], name: str) -> Role:
    """Return the role of a parameter that no module declares."""
    prefix, _, key = name.rpartition(".")
    module = modules[prefix]
    if isinstance(module, _NORMS):
        return "norm"
    if "bias" in key:
        return "bias"
    if isinstance(module, (nn.Embedding, nn.EmbeddingBag)):
        return "embedding"
    if isinstance(module, _CONVOLUTIONS):
        return "convolution"
    if isinstance(module, _RECURRENT) and "hh" in key:
        return "recurrent"
    return "vector" if module.get_parameter(key).dim() < 2 else "linear"


def _shared_role(roles: list[Role]) -> Role:
    """Return the role of a parameter that several modules share."""
    for role in ("special", "embedding"):
        if role in roles:
            return role
    return roles[0]


def _padding_row(modules: dict[str, nn.Module], names: list[str]) -> int | None:
    owners = (modules[name.rpartition(".")[0]] for name in names)
    rows = (getattr(owner, "padding_idx", None) for owner in owners)
    return next((row for row in rows if row is not None), None)
