"""Numbers and switches given inside braces by --config mean what they look like."""

from copy import deepcopy
from typing import Any

import pytest
from snakemake.cli import parse_config
from snakemake.utils import update_config

from web2gpt.config.load import load_config
from web2gpt.config.overrides import with_types
from web2gpt.config.root import Config
from web2gpt.errors import ConfigError

FILE: dict[str, Any] = {
    "data": {"name": "demo"},
    "input": [{"name": "web", "kind": "jsonl", "paths": ["web.jsonl"], "weight": 1.0}],
    "train": {"steps": 320, "cpu_fallback": False},
}


def configured(*entries: str) -> Config:
    """What Snakemake makes of --config over ``FILE``, validated."""
    values, given = deepcopy(FILE), parse_config(entries)
    update_config(values, given)
    return load_config(with_types(values, given))


def test_numbers_and_switches_in_braces() -> None:
    config = configured(
        "train={steps: 5, cpu_fallback: yes}",
        'run={"name": "other", "seed": 1}',
        "optimizer={lr: 1e-3}",
        "keep=results",
    )
    assert (config.train.steps, config.train.cpu_fallback) == (5, True)
    assert (config.run.name, config.run.seed, config.optimizer.lr) == ("other", 1, 1e-3)
    assert (config.keep, config.data.name) == ("results", "demo")


def test_text_stays_text_where_text_is_wanted() -> None:
    config = configured("run={name: 2024}", "sample={prompts: [5, 'yes', null]}")
    assert config.run.name == "2024"
    assert config.sample.prompts == ("5", "yes", "null")


def test_null_and_lists_of_objects() -> None:
    source = "input=[{name: a, kind: jsonl, paths: [a.jsonl], weight: 2}]"
    config = configured(source, "tokenizer={path: null}", "train={steps: null, samples: 64}")
    assert config.input[0].weight == 2
    assert config.tokenizer.path is None and config.train.samples == 64


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("train={steps: many}", "train.steps: 'many' is not allowed"),
        ("train={stepz: 5}", "train.stepz: no such setting; did you mean steps?"),
        ("train=5", "train: 5 is not allowed"),
        ("train={steps: [5]}", "train.steps: ['5'] is not allowed"),
        ("train={steps: '{'}", "train.steps: '{' is not allowed"),
    ],
)
def test_what_is_wrong_is_told(entry: str, said: str) -> None:
    with pytest.raises(ConfigError) as error:
        configured(entry)
    assert str(error.value).startswith(said)


def test_what_the_file_says_as_text_is_not_mended() -> None:
    values = deepcopy(FILE)
    values["train"]["steps"] = "5"
    with pytest.raises(ConfigError, match=r"train\.steps: '5' is not allowed"):
        load_config(with_types(values, {"keep": "all"}))
