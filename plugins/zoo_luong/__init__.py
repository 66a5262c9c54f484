"""Luong et al. 2015: dot, general and concat scorers."""

from collections.abc import Sequence

from zoo.plugin import Scorer, hookimpl
from zoo_luong.concat import Concat
from zoo_luong.dot import Dot
from zoo_luong.general import General


@hookimpl
def zoo_components() -> Sequence[type[Scorer]]:
    return [Dot, General, Concat]
