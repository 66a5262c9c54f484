"""Models on the Hugging Face Hub: verified downloads, and uploads with a model card."""

from zoo.hub.fetching import fetch as fetch
