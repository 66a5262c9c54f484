"""From YAML text to a checked model: documents, specs, JSON Schema, composition, reports."""
