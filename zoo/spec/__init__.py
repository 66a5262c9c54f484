"""Specs: YAML documents, validation, composition, reports and JSON Schema."""
