"""Settings given by Snakemake's --config, whose values in braces all arrive as text.

``--config train='{steps: 5}'`` is read without types and gives "5". Where the schema wants a number
or a switch, and only there, such a text is taken for what YAML would have read.
"""

import json
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import yaml
from pydantic import ValidationError

from web2gpt.config.root import Config


def with_types(values: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """``values``, of which ``given`` came by --config, with the types that the schema wants.

    What is wrong stays as it is, for the validation to tell.
    """
    meant = deepcopy(dict(values))
    for section, settings in given.items():
        for name in settings if isinstance(settings, dict) else ():
            if settings[name] == "null":
                meant[section][name] = None
    try:
        Config.model_validate_json(json.dumps(meant, default=str))
    except ValidationError as error:
        for detail in error.errors(include_context=False, include_url=False):
            *path, last = detail["loc"] or ("",)
            if isinstance(_at(given, detail["loc"]), str):
                _at(meant, path)[last] = _read(detail["input"])
    return meant


def _at(values: Any, path: Any) -> Any:
    """What stands under the keys and positions of ``path``; None if nothing does."""
    for part in path:
        try:
            values = values[part]
        except (KeyError, IndexError, TypeError):
            return None
    return values


def _read(text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return text
