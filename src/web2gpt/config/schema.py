"""The configuration's JSON Schema, made from its classes, for editors and for the guide.

The classes decide what is valid; the schema leaves out the rules that join several settings.
"""

import json

from web2gpt.config.root import Config


def schema_text() -> str:
    """The schema as indented JSON, the same for every run."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return json.dumps(schema | Config.model_json_schema(), indent=2, ensure_ascii=False) + "\n"
