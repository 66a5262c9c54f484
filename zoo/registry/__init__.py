"""The component registry: hooks, plugin discovery, lookup by name, and blueprints."""
