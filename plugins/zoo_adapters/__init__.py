"""Adapters: few trained parameters for a frozen model."""

from collections.abc import Sequence

from zoo.plugin import Adapter, hookimpl
from zoo_adapters.bottleneck import Bottleneck
from zoo_adapters.dora import Dora
from zoo_adapters.ia3 import Ia3
from zoo_adapters.lora import Lora
from zoo_adapters.module_copy import ModuleCopy
from zoo_adapters.prefix import Prefix


@hookimpl
def zoo_components() -> Sequence[type[Adapter]]:
    return [Lora, Dora, Ia3, Bottleneck, Prefix, ModuleCopy]
