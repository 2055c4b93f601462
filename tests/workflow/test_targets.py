"""Every stage of the chain is a target with a line on it, and the profiles stand alone."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.workflow.project import REPOSITORY, Project

from web2gpt.config.load import load_config
from web2gpt.config.versions import VERSIONS

TARGETS = (
    "urls fetch extract dedup clean decontaminate merge tokenize index train merge_checkpoint "
    "sample evaluate report all"
).split()

PRESETS = {preset.stem: preset for preset in (REPOSITORY / "workflow/presets").glob("*.yaml")}


def test_each_stage_is_a_target_with_a_docstring(tmp_path: Path) -> None:
    project = Project(tmp_path, yaml.safe_load((REPOSITORY / "config.yaml").read_text()))
    lines = project.succeed("--list-rules").splitlines()
    said = dict(line.split(" (", 1) for line in lines if line.endswith(".)"))
    assert set(TARGETS) <= set(said)
    assert all(len(text) < 110 for text in said.values())


def test_each_stage_has_a_version_that_its_rule_hands_over() -> None:
    rules = "".join(file.read_text() for file in (REPOSITORY / "workflow/rules").glob("*.smk"))
    for stage in VERSIONS:
        assert f'"{stage}"' in rules, f"no rule watches the version of {stage}"


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_valid_over_the_default_configuration(name: str) -> None:
    layers = [REPOSITORY / "config.yaml"]
    layers += [PRESETS[base] for base in sorted(PRESETS) if name.startswith(f"{base}-")]
    values: dict[str, Any] = {}
    for layer in (*layers, PRESETS[name]):
        values = _merged(values, yaml.safe_load(layer.read_text()))
    assert load_config(values).run.name == name


def _merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(base.get(key), dict)
        merged[key] = _merged(base[key], value) if both else value
    return merged
