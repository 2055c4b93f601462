"""What a run may start from is said before any process is started."""

from pathlib import Path

import pytest

from web2gpt.config.training import Model, Train
from web2gpt.errors import ConfigError
from web2gpt.io.atomic import write_json
from web2gpt.train.origin import check_origin, origin


def checkpoint(folder: Path) -> Path:
    path = folder / "step_00000004"
    write_json(path / "index.json", {"identity": folder.name, "step": 4})
    return path


def test_a_checkpoint_is_known_by_identity_and_step(tmp_path: Path) -> None:
    path = checkpoint(tmp_path / "abc")
    train = Train(continue_from=str(path), continue_mode="branch")
    assert origin(train) == {"mode": "branch", "identity": "abc", "step": 4}
    assert origin(Train()) is None


def test_a_hugging_face_folder_is_known_by_its_contents_and_gives_weights_only(
    tmp_path: Path,
) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"x")
    weights = Train(continue_from=str(tmp_path), continue_mode="weights")
    before = origin(weights)
    (tmp_path / "model.safetensors").write_bytes(b"y")
    assert before != origin(weights)
    with pytest.raises(ConfigError, match="weights only; set"):
        origin(Train(continue_from=str(tmp_path)))


@pytest.mark.parametrize("mode", ["extend", "branch", "weights"])
def test_what_is_named_and_not_there_is_an_error(tmp_path: Path, mode: str) -> None:
    nowhere = Train.model_validate(
        {"continue_from": str(tmp_path / "step_00000004"), "continue_mode": mode}
    )
    with pytest.raises(ConfigError, match="is no checkpoint and no Hugging Face folder"):
        origin(nowhere)


def test_an_extension_changes_length_and_schedule_only(tmp_path: Path) -> None:
    path = checkpoint(tmp_path / "abc")
    old = {"seed": 1, "steps": 4, "schedule": {"kind": "cosine"}, "optimizer": {"lr": 1.0}}
    extends = Train(continue_from=str(path))
    with pytest.raises(ConfigError, match="whether the run is the same"):
        check_origin(extends, old)
    write_json(path.parent / "identity.json", old)
    check_origin(extends, old | {"steps": 9, "schedule": {"kind": "linear"}, "index": "longer"})
    changed = old | {"seed": 2, "optimizer": {"lr": 2.0}}
    with pytest.raises(ConfigError, match="seed, optimizer changed"):
        check_origin(extends, changed)
    check_origin(Train(continue_from=str(path), continue_mode="branch"), changed)


@pytest.mark.parametrize("mode", ["branch", "weights"])
@pytest.mark.parametrize(
    ("name", "other"),
    [("n_layer", 1), ("n_head", 1), ("activation_function", "gelu"), ("layer_norm_epsilon", 1e-6)],
)
def test_another_model_takes_no_weights(
    tmp_path: Path, mode: str, name: str, other: float | str
) -> None:
    model = Model(n_layer=2, n_embd=32, n_head=4, n_positions=16).model_dump()
    path = tmp_path / "step_00000004"
    train = Train.model_validate({"continue_from": str(path), "continue_mode": mode})
    stated = model | {"activation_function": "gelu_fast", "vocab_size": 11}  # one of its names
    for file, content in (("config.json", stated), ("index.json", {"model": model})):
        write_json(path / file, content)
        check_origin(train, {"model": model})
        with pytest.raises(ConfigError, match=rf"{name} = {model[name]}, .* set model.{name}: "):
            check_origin(train, {"model": model | {name: other}})
