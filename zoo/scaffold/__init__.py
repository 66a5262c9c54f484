"""Writes plugins for other people to fill in."""

from zoo.scaffold.plugin import write_plugin

__all__ = ["write_plugin"]
