"""Xu et al. 2015: image captioning with visual attention."""

from collections.abc import Sequence

from zoo.plugin import Decoder, Objective, hookimpl
from zoo_show_attend_tell.doubly_stochastic import DoublyStochastic
from zoo_show_attend_tell.show_attend_tell import ShowAttendTell


@hookimpl
def zoo_components() -> Sequence[type[Decoder] | type[Objective]]:
    return [ShowAttendTell, DoublyStochastic]
