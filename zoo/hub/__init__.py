"""Models on the Hugging Face Hub: pulled with every byte checked, pushed with a card."""

from zoo.hub.fetching import fetch as fetch
