"""The configuration is validated in full; each fault is one clear line."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from web2gpt.config.base import Settings
from web2gpt.config.load import dump_config, load_config, parse_settings, read_config
from web2gpt.config.root import Config
from web2gpt.config.training import Optimizer, Parallel
from web2gpt.errors import ConfigError

SOURCE = {"name": "web", "kind": "jsonl", "paths": ["web.jsonl"]}


def config(**sections: Any) -> dict[str, Any]:
    return {"input": [SOURCE], **sections}


def faults(values: Any) -> list[str]:
    with pytest.raises(ConfigError) as error:
        load_config(values)
    return str(error.value).splitlines()


def sections(
    kind: type[Settings] = Config, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], type[Settings]]]:
    """Each section, at any depth, with the keys that lead to it; a list's items stand under 0."""
    yield path, kind
    for name, field in kind.model_fields.items():
        annotation = field.annotation
        inner = next(iter(get_args(annotation)), annotation)
        if isinstance(inner, type) and issubclass(inner, Settings):
            item = () if inner is annotation else ("0",)
            yield from sections(inner, (*path, name, *item))


def placed(path: tuple[str, ...], name: str, value: Any) -> dict[str, Any]:
    """A configuration, valid but for ``name: value`` in the section at ``path``."""
    values = config()
    if path[:1] == ("input",):
        values["input"] = [dict(SOURCE)]
        inner = values["input"][0]
        path = path[2:]
    else:
        inner = values
    for part in path:
        inner = inner.setdefault(part, {})
    inner[name] = value
    return values


SECTIONS = list(sections())
SETTINGS = [(path, kind, name) for path, kind in SECTIONS for name in kind.model_fields]
each_setting = pytest.mark.parametrize(
    ("path", "kind", "name"), SETTINGS, ids=[".".join((*path, name)) for path, _, name in SETTINGS]
)


def test_only_the_sources_need_to_be_given() -> None:
    assert load_config(config()).input[0].name == "web"
    assert faults({}) == ["input: missing; it has no default"]


def test_sections_are_found_at_every_depth() -> None:
    assert ("input", "0", "keys") in [path for path, _ in SECTIONS]
    assert ("model",) in [path for path, _ in SECTIONS]


@each_setting
def test_a_misspelt_key_is_told_with_the_nearest_valid_one(
    path: tuple[str, ...], kind: type[Settings], name: str
) -> None:
    wrong = name + "x"
    expected = f"{'.'.join((*path, wrong))}: no such setting; did you mean {name}?"
    assert expected in faults(placed(path, wrong, 1))


@each_setting
def test_a_wrong_type_names_the_key_and_the_value(
    path: tuple[str, ...], kind: type[Settings], name: str
) -> None:
    for value in ({"surprise": 1}, [[["surprise"]]]):
        lines = faults(placed(path, name, value))
        key = ".".join((*path, name))
        assert any(line.startswith(key) for line in lines)
        assert all("surprise" in line or "missing" in line or "list" in line or key in line
                   for line in lines)  # fmt: skip


@pytest.mark.parametrize("path", [path for path, _ in SECTIONS if path and path[-1] != "0"])
def test_a_section_that_is_no_mapping_is_named(path: tuple[str, ...]) -> None:
    *parents, name = path
    for value in (3, "text", [1], None):
        (line,) = faults(placed(tuple(parents), name, value))
        assert line.startswith(".".join(path) + ": ")


def test_a_key_like_no_other_is_told_with_all_valid_ones() -> None:
    (line,) = faults(config(parallel={"zzzzzz": 1}))
    names = ", ".join(Parallel.model_fields)
    assert line == f"parallel.zzzzzz: no such setting; allowed here: {names}"


@pytest.mark.parametrize(
    ("values", "line"),
    [
        (config(model={"n_layer": 0}), "model.n_layer: 0 is not allowed: input should be greater"
         " than or equal to 1"),
        (config(model={"n_layer": "4"}), "model.n_layer: '4' is not allowed: input should be a"
         " valid integer"),
        (config(model={"n_layer": 4.0}), "model.n_layer: 4.0 is not allowed: input should be a"
         " valid integer"),
        (config(model={"n_layer": True}), "model.n_layer: True is not allowed: input should be a"
         " valid integer"),
        (config(optimizer={"lr": True}), "optimizer.lr: True is not allowed: input should be a"
         " valid number"),
        (config(optimizer={"lr": "fast"}), "optimizer.lr: 'fast' is not allowed: input should be a"
         " valid number"),
        (config(keep="some"), "keep: 'some' is not allowed: input should be 'all' or 'results'"),
        (config(run={"name": "../x"}), "run.name: '../x' is not allowed: string should match"),
        (config(run={"name": "a/b"}), "run.name: 'a/b' is not allowed: string should match"),
        (config(model={"n_embd": 100, "n_head": 3}),
         "model: n_embd = 100 is not a multiple of n_head = 3"),
        (config(parallel={"tensor": 3}), "parallel.tensor = 3 does not divide model.n_head = 4"),
        (config(model={"n_head": 6, "n_embd": 6}, parallel={"tensor": 4}),
         "parallel.tensor = 4 does not divide model.n_head = 6"),
        (config(parallel={"tensor": 2, "data": 2}, train={"processes": 3}),
         "train.processes = 3, but processes 4 = tensor 2 x pipeline 1 x data 2"),
        (config(parallel={"pipeline": 5}), "parallel.pipeline = 5 is more than model.n_layer = 4"),
        (config(parallel={"zero": 4}), "parallel.zero: 4 is not allowed: input should be 0, 1, 2"
         " or 3"),
        (config(train={"micro_batch_size": 8, "global_batch_size": 12}),
         "train.global_batch_size = 12 is not a multiple of micro_batch_size 8 x data 1 = 8"),
        ({"input": [{**SOURCE, "kind": "urls"}]}, "fetch.contact: a crawl of real hosts needs"),
        (config(sample={"prompts": []}), "sample.prompts: no prompts; give some, or an empty"),
        ({"input": [SOURCE, SOURCE]}, "input: the name 'web' stands twice"),
        ({"input": [{**SOURCE, "name": "urls"}]}, "input.0: the name 'urls' is kept"),
        ({"input": []}, "input: [] is not allowed: "),
        ({"input": [{**SOURCE, "paths": []}]}, "input.0.paths: [] is not allowed: "),
        ({"input": [{**SOURCE, "paths": "web.jsonl"}]},
         "input.0.paths: 'web.jsonl' is not allowed: "),
        ({"input": [{"name": "web", "kind": "jsonl"}]}, "input.0.paths: missing"),
        ({"input": [SOURCE, {**SOURCE, "name": "b", "keys": {"txt": "t"}}]},
         "input.1.keys.txt: no such setting; did you mean text?"),
        ({"input": [{**SOURCE, "kind": "url"}]}, "input.0.kind: 'url' is not allowed: input should"
         " be 'urls', 'warc', 'jsonl' or 'tokens'"),
    ],
)  # fmt: skip
def test_each_kind_of_mistake_is_one_line(values: dict[str, Any], line: str) -> None:
    (found,) = faults(values)
    assert found.startswith(line)


def test_all_faults_are_told_at_once() -> None:
    lines = faults(config(model={"n_layer": 0, "n_heads": 4}, optimizer={"lr": -1}))
    assert [line.partition(":")[0] for line in lines] == [
        "model.n_layer", "model.n_heads", "optimizer.lr",
    ]  # fmt: skip


def test_a_long_value_does_not_flood_the_line() -> None:
    (line,) = faults(config(keep="x" * 100_000))
    assert len(line) < 300
    assert line.startswith("keep: 'xxx")
    assert line.endswith("input should be 'all' or 'results'")


def test_a_line_break_in_a_value_stays_in_its_line() -> None:
    assert len(faults(config(run={"name": "a\nb"}))) == 1
    assert len(faults(config(**{"run\nname": 1}))) == 1


@pytest.mark.parametrize("text", ["1e-3", "1E-3", "0.001", "1.0e-3", ".1e-2"])
def test_yaml_numbers_mean_what_they_look_like(text: str) -> None:
    values = yaml.safe_load(f"optimizer: {{lr: {text}}}")
    assert load_config(config(**values)).optimizer.lr == 1e-3


@pytest.mark.parametrize("text", [".nan", ".inf", "nan", "inf", "-.inf", "1e999", "infinity"])
def test_what_is_no_finite_number_is_refused(text: str) -> None:
    (line,) = faults(config(**yaml.safe_load(f"optimizer: {{lr: {text}}}")))
    assert line.startswith("optimizer.lr: ")


@given(st.floats(min_value=1e-12, max_value=1e6))
def test_any_number_comes_through_as_text_or_number(value: float) -> None:
    assert load_config(config(optimizer={"lr": repr(value)})).optimizer.lr == value
    assert load_config(config(optimizer={"lr": value})).optimizer.lr == value


yaml_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.text(max_size=6) | st.integers() | st.none() | st.booleans() | st.dates(), inner,
        max_size=3),
    max_leaves=10,
)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from([*Config.model_fields, "other"]), yaml_values, max_size=3))
def test_whatever_yaml_can_hold_is_valid_or_explained(values: dict[str, Any]) -> None:
    try:
        load_config(values)
    except ConfigError as error:
        assert str(error)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(SETTINGS), yaml_values)
def test_whatever_a_setting_holds_is_valid_or_explained(place: Any, value: Any) -> None:
    path, _, name = place
    try:
        load_config(placed(path, name, value))
    except ConfigError as error:
        assert all(len(line) < 1000 for line in str(error).splitlines())


def test_the_resolved_form_is_the_same_configuration(tmp_path: Path) -> None:
    first = load_config(config(optimizer={"lr": "1e-3"}, clean={"languages": ["en", "de"]}))
    text = dump_config(first)
    path = tmp_path / "config.yaml"
    path.write_text(text)
    assert read_config(path) == first
    assert dump_config(read_config(path)) == text
    assert yaml.safe_load(text)["optimizer"]["lr"] == 1e-3


def test_a_configuration_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        load_config(config()).run.seed = 3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no such file"),
        (b"", "no settings in it"),
        (b"- a\n", "no settings in it"),
        (b"a: [", "not YAML"),
        (b"a: b: c", "not YAML"),
        (b"\xff\xfe\x00", "not UTF-8 text"),
        (b"input: !!python/object/apply:os.system [ls]", "not YAML"),
        (b"2024-01-01: 1", "no plain tree of settings"),
        (b"input: &a [*a]", "no plain tree of settings"),
        (b"keep: all\nkeep: results\ninput: []", "the key 'keep' stands twice"),
        (b"model:\n  n_layer: 1\n  n_layer: 2\n", "the key 'n_layer' stands twice"),
    ],
)
def test_a_file_that_is_no_configuration_is_named(
    tmp_path: Path, content: bytes | None, message: str
) -> None:
    path = tmp_path / "config.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError) as error:
        read_config(path)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_folder_is_no_configuration(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_config(tmp_path)


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_bytes(b"\xef\xbb\xbfinput: [{name: a, kind: jsonl, paths: [b]}]\n")
    assert read_config(tmp_path / "x.yaml").input[0].name == "a"


def test_merge_keys_and_anchors_of_yaml_work(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(
        "input:\n- &one {name: a, kind: jsonl, paths: [x]}\n- {<<: *one, name: b}\n"
    )
    assert [source.name for source in read_config(tmp_path / "x.yaml").input] == ["a", "b"]


def test_one_section_is_read_from_json() -> None:
    assert parse_settings(Optimizer, '{"lr": 0.5}').lr == 0.5
    with pytest.raises(ConfigError, match="not_there: no such setting"):
        parse_settings(Optimizer, '{"not_there": 1}')


def test_sources_are_weighted_all_or_none() -> None:
    other = SOURCE | {"name": "books"}
    weighted = SOURCE | {"weight": 2.0}
    (line,) = faults({"input": [weighted, other]})
    assert "'books' has no weight" in line
    load_config({"input": [weighted, other], "index": {"validation": ["books"]}})
    (line,) = faults(config(index={"validation": ["wiki"]}))
    assert "'wiki' is no source" in line
    (line,) = faults(config(index={"validation": ["web"]}))
    assert "none is left to train on" in line


def test_an_evaluated_validation_set_is_one_of_the_indexs() -> None:
    (line,) = faults(config(evaluate={"split": "valid-wiki"}))
    assert "index.validation does not name 'wiki'" in line
    (line,) = faults(config(evaluate={"split": "train"}))
    assert line.startswith("evaluate.split")
