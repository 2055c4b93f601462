"""Reshaping: another layout's files, the same checkpoint."""

from pathlib import Path

import pytest
import torch
from checkpoint_files import MODEL, VOCAB, change, write_checkpoint
from safetensors.torch import load_file
from typer.testing import CliRunner

from web2gpt.checkpoint.format import Index, State, rank_file
from web2gpt.checkpoint.inspect import verify
from web2gpt.checkpoint.joined import JoinedCheckpoint
from web2gpt.checkpoint.reshape import reshape, stage_of
from web2gpt.cli import app
from web2gpt.config.training import Parallel
from web2gpt.errors import ConfigError, InputError
from web2gpt.model.gpt2 import GPT2


@pytest.mark.parametrize(("tensor", "pipeline"), [(1, 1), (2, 1), (4, 2), (1, 2)])
def test_every_tensor_and_moment_is_the_same_under_another_layout(
    tmp_path: Path, gpt2: GPT2, tensor: int, pipeline: int
) -> None:
    source = write_checkpoint(tmp_path / "step_00000007", gpt2, 2, 2)
    output = tmp_path / "new" / "step_00000007"
    said = reshape(source, output, Parallel(tensor=tensor, pipeline=pipeline))
    assert "equal to the bit" in said and "is sound" in verify(output)
    files = {rank_file(rank, stage) for rank in range(tensor) for stage in range(pipeline)}
    written = Index.read(output)
    assert files == {name for name in written.files if name.startswith("tensor")}
    with JoinedCheckpoint(source) as old, JoinedCheckpoint(output) as new:
        for name in old.shapes:
            for kind in ("weight", "exp_avg", "exp_avg_sq"):
                assert torch.equal(old.whole(kind, name), new.whole(kind, name))
    before, after = State.read(source), State.read(output)
    assert (after.step, after.tokens, after.random) == (before.step, before.tokens, before.random)
    assert after.layout["tensor"] == tensor and after.layout["pipeline"] == pipeline
    assert (written.identity, written.step) == ("abc123", 7)
    reference = (source / "reference.safetensors").read_bytes()
    assert (output / "reference.safetensors").read_bytes() == reference


def test_there_and_back_gives_the_bytes_that_the_trainer_wrote(tmp_path: Path, gpt2: GPT2) -> None:
    source = write_checkpoint(tmp_path / "a", gpt2, 4, 1)
    reshape(source, tmp_path / "b", Parallel(tensor=1, pipeline=2))
    reshape(tmp_path / "b", tmp_path / "c", Parallel(tensor=4))
    for path in sorted(source.glob("tensor*")):
        assert (tmp_path / "c" / path.name).read_bytes() == path.read_bytes()


def test_padding_rows_stay_out_of_the_files(tmp_path: Path, gpt2: GPT2) -> None:
    source = write_checkpoint(tmp_path / "a", gpt2, 1, 1)
    reshape(source, tmp_path / "b", Parallel(tensor=4))
    rows = [len(load_file(tmp_path / "b" / rank_file(rank, 0))["weight/wte.weight"])
            for rank in range(4)]  # fmt: skip
    assert sum(rows) == VOCAB


def test_the_stage_of_a_parameter_follows_the_pipelines_bounds() -> None:
    bounds = [0, 4, 8]  # wte, wpe, 4 blocks, ln_f, head
    names = ("wte.weight", "wpe.weight", "h.1.ln_1.bias", "h.2.ln_1.bias", "ln_f.bias")
    assert [stage_of(name, bounds) for name in names] == [0, 0, 0, 1, 1]


def test_what_cannot_be_cut_so_or_is_damaged_is_refused(tmp_path: Path, gpt2: GPT2) -> None:
    source = write_checkpoint(tmp_path / "a", gpt2, 2, 1)
    with pytest.raises(ConfigError, match=f"3 does not divide n_head = {MODEL.n_head}"):
        reshape(source, tmp_path / "b", Parallel(tensor=3))
    with pytest.raises(ConfigError, match="more than n_layer"):
        reshape(source, tmp_path / "b", Parallel(pipeline=3))
    with pytest.raises(InputError, match="is there already"):
        reshape(source, source, Parallel())
    change(source, rank_file(1, 0), lambda tensors: tensors["exp_avg/wpe.weight"][0].add_(1))
    with pytest.raises(InputError, match=r"wpe\.weight is not the same"):
        reshape(source, tmp_path / "b", Parallel())
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_the_command_reshapes(tmp_path: Path, gpt2: GPT2) -> None:
    source = write_checkpoint(tmp_path / "a", gpt2, 2, 1)
    arguments = ["checkpoint", "reshape", source, "--output", tmp_path / "b", "--pipeline", 2]
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    assert "28 tensors in 2 files" in result.output
