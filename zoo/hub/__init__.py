"""Models on the Hugging Face Hub: pulled with every byte checked, pushed with a card."""

from zoo.hub.models import (
    Pulled as Pulled,
    fetch as fetch,
    find as find,
    load as load,
    pull as pull,
)
from zoo.hub.publish import Pushed as Pushed, push as push, save_folder as save_folder
