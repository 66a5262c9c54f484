"""Location-based scorers: Graves 2013, Chorowski et al. 2015."""

from collections.abc import Sequence

from zoo.plugin import Scorer, hookimpl
from zoo_location.location import Location
from zoo_location.location_window import LocationWindow


@hookimpl
def zoo_components() -> Sequence[type[Scorer]]:
    return [Location, LocationWindow]
