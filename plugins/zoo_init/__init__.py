"""Initialisers."""

from collections.abc import Sequence

from zoo.plugin import Initialiser, hookimpl
from zoo_init.kaiming_normal import KaimingNormal
from zoo_init.normal import Normal
from zoo_init.orthogonal import Orthogonal
from zoo_init.truncated_normal import TruncatedNormal
from zoo_init.uniform import Uniform
from zoo_init.xavier_normal import XavierNormal
from zoo_init.xavier_uniform import XavierUniform


@hookimpl
def zoo_components() -> Sequence[type[Initialiser]]:
    return [
        XavierUniform,
        XavierNormal,
        KaimingNormal,
        Normal,
        TruncatedNormal,
        Uniform,
        Orthogonal,
    ]
