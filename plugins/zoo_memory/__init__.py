"""Memory-augmented models: NTM, DNC, memory networks and dynamic memory networks."""

from collections.abc import Sequence

from zoo.plugin import Component, hookimpl
from zoo_memory.copy_task import CopyTask
from zoo_memory.dense import Dense
from zoo_memory.dnc import DNC
from zoo_memory.dynamic_memory import DynamicMemory
from zoo_memory.memory_network import MemoryNetwork
from zoo_memory.ntm import NTM
from zoo_memory.supporting_facts import SupportingFacts
from zoo_memory.tagger import Tagger


@hookimpl
def zoo_components() -> Sequence[type[Component]]:
    return [CopyTask, Dense, NTM, DNC, MemoryNetwork, DynamicMemory, Tagger, SupportingFacts]
