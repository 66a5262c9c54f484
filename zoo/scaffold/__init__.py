"""Project templates for plugins."""

from zoo.scaffold.plugin_writer import write_plugin

__all__ = ["write_plugin"]
