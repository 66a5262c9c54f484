"""Project templates for plugins."""

from zoo.scaffold.plugin import write_plugin

__all__ = ["write_plugin"]
