"""Merging: any layout's slices become one Hugging Face folder, or nothing does.

Checkpoints are made here from a known model, slice by slice; transformers judges the result.
"""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from checkpoint_files import MODEL, VOCAB, change, reindex, write_checkpoint
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from transformers import AutoTokenizer, GPT2LMHeadModel
from typer.testing import CliRunner

from web2gpt.checkpoint.export import split_files
from web2gpt.checkpoint.format import KINDS, REFERENCE, Index, rank_file
from web2gpt.checkpoint.huggingface import load_model
from web2gpt.checkpoint.inspect import describe, verify
from web2gpt.checkpoint.merge import MergeFiles, merge_checkpoint
from web2gpt.checkpoint.open import ModelFiles
from web2gpt.cli import app
from web2gpt.config.outputs import MergeCheckpoint, SampleRun
from web2gpt.errors import ConfigError, InputError
from web2gpt.model.gpt2 import GPT2
from web2gpt.sample.stage import draw_samples, sampler_of


def merge(folder: Path, tokenizer: Path, **settings: Any) -> Path:
    root = folder.parent
    done = root / "done.json"
    done.write_text(json.dumps({"checkpoint": str(folder), "identity": "abc123", "step": 7}))
    files = MergeFiles(done, tokenizer, root / "model", root / "work")
    merge_checkpoint(files, MergeCheckpoint(**settings))
    return root / "model"


LAYOUTS = [(1, 1, False), (2, 1, False), (4, 1, False), (1, 2, True), (2, 2, False), (2, 2, True)]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_transformers_loads_the_merged_model_of_any_layout(
    tmp_path: Path, gpt2: GPT2, tokenizer: Path, layout: tuple[int, int, bool]
) -> None:
    folder = write_checkpoint(tmp_path / "step", gpt2, *layout)
    model = merge(folder, tokenizer)
    theirs, info = GPT2LMHeadModel.from_pretrained(model, output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    assert not info["mismatched_keys"]
    assert theirs.config.vocab_size == VOCAB
    reference = load_file(folder / "reference.safetensors")
    with torch.no_grad():
        logits = theirs.eval()(reference["tokens"]).logits
    torch.testing.assert_close(logits, reference["logits"], atol=1e-4, rtol=0)


def test_the_same_bytes_for_every_layout(tmp_path: Path, gpt2: GPT2, tokenizer: Path) -> None:
    merged = set()
    for tensor, pipeline in ((1, 1), (4, 2)):
        folder = write_checkpoint(tmp_path / f"{tensor}" / "step", gpt2, tensor, pipeline)
        merged.add((merge(folder, tokenizer) / "model.safetensors").read_bytes())
    assert len(merged) == 1


def test_the_folder_stands_alone(tmp_path: Path, gpt2: GPT2, tokenizer: Path) -> None:
    model = merge(write_checkpoint(tmp_path / "step", gpt2, 2, 1), tokenizer)
    theirs = AutoTokenizer.from_pretrained(model)
    text = "the cat sat on <|endoftext|> the mat ñ"
    ours = Tokenizer.from_file(str(tokenizer)).encode(text).ids
    assert theirs(text)["input_ids"] == ours
    assert theirs.decode(ours) == text
    assert theirs.eos_token_id == 0
    config = json.loads((model / "config.json").read_text())
    assert config["eos_token_id"] == config["bos_token_id"] == 0
    assert str(tmp_path) not in (model / "config.json").read_text()
    generation = GPT2LMHeadModel.from_pretrained(model).generation_config
    assert generation.eos_token_id == 0


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_chosen_dtype_is_what_transformers_finds(
    tmp_path: Path, gpt2: GPT2, tokenizer: Path, dtype: str
) -> None:
    model = merge(write_checkpoint(tmp_path / "step", gpt2, 2, 1), tokenizer, dtype=dtype)
    theirs = GPT2LMHeadModel.from_pretrained(model, dtype="auto")
    assert theirs.dtype == getattr(torch, dtype)
    for name, parameter in gpt2.tensors().items():
        value = theirs.transformer.state_dict()[name]
        value = value.t() if value.shape != parameter.shape or "c_" in name else value
        assert torch.equal(value, parameter.detach().to(theirs.dtype)), name


def test_large_weights_are_split_into_files_that_transformers_joins(
    tmp_path: Path, gpt2: GPT2, tokenizer: Path
) -> None:
    folder = write_checkpoint(tmp_path / "step", gpt2, 2, 1)
    model = merge(folder, tokenizer, max_file_bytes=40_000)
    files = sorted(model.glob("model-*.safetensors"))
    assert len(files) > 1 and not (model / "model.safetensors").exists()
    _, info = GPT2LMHeadModel.from_pretrained(model, output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    ours, _ = load_model(model)
    for name, parameter in ours.tensors().items():
        assert torch.equal(parameter, gpt2.tensors()[name])


def test_files_are_filled_up_to_their_size() -> None:
    shapes = {"a": (10,), "b": (10,), "c": (30,), "d": (1,)}
    plan = split_files(shapes, torch.float32, max_file_bytes=80)
    assert list(plan.values()) == [["a", "b"], ["c"], ["d"]]
    assert next(iter(plan)) == "model-00001-of-00003.safetensors"


def test_weights_of_an_earlier_merge_do_not_stay(
    tmp_path: Path, gpt2: GPT2, tokenizer: Path
) -> None:
    folder = write_checkpoint(tmp_path / "step", gpt2, 1, 1)
    merge(folder, tokenizer, max_file_bytes=40_000)
    model = merge(folder, tokenizer)
    assert sorted(path.name for path in model.iterdir()) == [
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    ]


def test_replicas_that_differ_are_refused_by_name_and_size(
    tmp_path: Path, gpt2: GPT2, tokenizer: Path
) -> None:
    folder = write_checkpoint(tmp_path / "step", gpt2, 2, 1)

    def drift(tensors: dict[str, torch.Tensor]) -> None:
        tensors["weight/h.1.ln_2.bias"][3] += 0.25

    change(folder, rank_file(1, 0), drift)
    with pytest.raises(InputError, match=r"h\.1\.ln_2\.bias .* 1 of 32 values .* 0\.25"):
        merge(folder, tokenizer)
    assert not (tmp_path / "model").exists()


def test_a_tied_copy_that_differs_is_refused(tmp_path: Path, gpt2: GPT2, tokenizer: Path) -> None:
    folder = write_checkpoint(tmp_path / "step", gpt2, 1, 2, tied_twice=True)
    change(folder, rank_file(0, 1), lambda tensors: tensors["weight/wte.weight"][5].neg_())
    with pytest.raises(InputError, match=r"wte\.weight is not the same"):
        merge(folder, tokenizer)


def test_missing_and_unknown_keys_are_refused(tmp_path: Path, gpt2: GPT2, tokenizer: Path) -> None:
    folder = write_checkpoint(tmp_path / "step", gpt2, 2, 1)
    spoiled = tmp_path / "missing" / "step"
    shutil.copytree(folder, spoiled)
    change(spoiled, rank_file(0, 0), lambda tensors: tensors.pop("weight/ln_f.bias"))
    with pytest.raises(InputError, match=r"weight/ln_f\.bias is missing"):
        merge(spoiled, tokenizer)
    spoiled = tmp_path / "unknown" / "step"
    shutil.copytree(folder, spoiled)
    change(spoiled, rank_file(0, 0), lambda t: t.update({"weight/extra": torch.zeros(1)}))
    with pytest.raises(InputError, match=r"weight/extra is not in index\.json"):
        merge(spoiled, tokenizer)


def test_a_gap_between_slices_is_refused(tmp_path: Path, gpt2: GPT2, tokenizer: Path) -> None:
    folder = write_checkpoint(tmp_path / "step", gpt2, 2, 1)
    index = Index.read(folder)
    entry = index.tensors["h.0.mlp.c_fc.bias"]
    half = replace(entry, parts=entry.parts[:1])
    tensors = {**index.tensors, "h.0.mlp.c_fc.bias": half}
    for kind in KINDS:
        change(folder, rank_file(1, 0), lambda t, kind=kind: t.pop(f"{kind}/h.0.mlp.c_fc.bias"))
    reindex(folder, replace(index, tensors=tensors))
    with pytest.raises(InputError, match=r"slices of h\.0\.mlp\.c_fc\.bias cover 64 of 128"):
        merge(folder, tokenizer)


def test_logits_that_are_not_the_trainers_are_refused(
    tmp_path: Path, gpt2: GPT2, tokenizer: Path
) -> None:
    folder = write_checkpoint(tmp_path / "step", gpt2, 2, 1)
    change(folder, "reference.safetensors", lambda tensors: tensors["logits"][0, 3].add_(2e-4))
    with pytest.raises(InputError, match=r"logits .* differ from the trainer's .* 0\.0002"):
        merge(folder, tokenizer)
    assert not (tmp_path / "model").exists()
    merge(folder, tokenizer, verify="slices")


def test_a_trainer_that_rounds_is_held_to_its_rounding(
    tmp_path: Path, gpt2: GPT2, tokenizer: Path
) -> None:
    folder = write_checkpoint(tmp_path / "step", gpt2, 1, 1)
    reference = load_file(folder / "reference.safetensors")
    rounded = GPT2(MODEL, VOCAB).to(torch.bfloat16).eval()
    rounded.load_state_dict(gpt2.state_dict())
    with torch.no_grad():
        reference["logits"] = rounded(reference["tokens"]).float()
    save_file(reference, folder / "reference.safetensors")
    reindex(folder, Index.read(folder))
    with pytest.raises(InputError, match="differ from the trainer's"):
        merge(folder, tokenizer)
    replace(Index.read(folder), precision="bf16").write(folder)
    merge(folder, tokenizer)
    reference["logits"] = reference["logits"].roll(1, dims=1)
    save_file(reference, folder / "reference.safetensors")
    reindex(folder, Index.read(folder))
    with pytest.raises(InputError, match="differ from the trainer's"):
        merge(folder, tokenizer)


def test_a_value_that_the_dtype_cannot_hold_is_refused(
    tmp_path: Path, gpt2: GPT2, tokenizer: Path
) -> None:
    folder = write_checkpoint(tmp_path / "step", gpt2, 1, 1)
    change(folder, rank_file(0, 0), lambda t: t["weight/wpe.weight"][2, 2].fill_(1e6))
    with pytest.raises(InputError, match=r"wpe\.weight: .*float16"):
        merge(folder, tokenizer, dtype="float16")


def test_a_damaged_file_is_refused(tmp_path: Path, gpt2: GPT2, tokenizer: Path) -> None:
    folder = write_checkpoint(tmp_path / "step", gpt2, 1, 1)
    with (folder / rank_file(0, 0)).open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"\x7f")
    with pytest.raises(InputError, match="checksum"):
        merge(folder, tokenizer)
    with pytest.raises(InputError, match="checksum"):
        verify(folder)


def test_another_tokenizer_is_refused(tmp_path: Path, gpt2: GPT2, tokenizer: Path) -> None:
    folder = write_checkpoint(tmp_path / "step", gpt2, 1, 1)
    other = Tokenizer.from_file(str(tokenizer))
    other.add_tokens(["extra"])
    other.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(InputError, match=r"264 ids, but .* trained with 263"):
        merge(folder, tmp_path / "tokenizer.json")


def test_a_second_copy_finds_the_work_done(
    tmp_path: Path, gpt2: GPT2, tokenizer: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_checkpoint(tmp_path / "step", gpt2, 2, 1)
    model = merge(folder, tokenizer)
    before = (model / "model.safetensors").stat().st_mtime_ns
    merge(folder, tokenizer)
    assert (model / "model.safetensors").stat().st_mtime_ns == before
    summaries = capsys.readouterr().out.splitlines()
    assert len(summaries) == 2 and summaries[0] == summaries[1]


def test_inspect_and_verify_say_what_a_checkpoint_holds(tmp_path: Path, gpt2: GPT2) -> None:
    folder = write_checkpoint(tmp_path / "step", gpt2, 2, 2)
    text = describe(folder)
    for part in ("abc123", "1,792 tokens", "tensor 2, pipeline 2", "vocabulary 263"):
        assert part in text
    assert "is sound" in verify(folder)
    change(folder, rank_file(1, 1), lambda t: t["exp_avg_sq/h.1.mlp.c_fc.bias"][0].neg_())
    with pytest.raises(InputError, match="negative"):
        verify(folder)
    change(folder, rank_file(1, 1), lambda t: t["exp_avg_sq/h.1.mlp.c_fc.bias"][0].fill_(torch.nan))
    with pytest.raises(InputError, match="1 values that are not finite"):
        verify(folder)


def test_the_commands_do_as_the_functions(tmp_path: Path, gpt2: GPT2, tokenizer: Path) -> None:
    folder = write_checkpoint(tmp_path / "step", gpt2, 2, 1)
    (tmp_path / "done.json").write_text(json.dumps({"checkpoint": str(folder)}))
    places = ["--done", tmp_path / "done.json", "--tokenizer", tokenizer]
    places += ["--output", tmp_path / "model", "--work", tmp_path / "work"]
    commands = {
        "parameters": ["checkpoint", "inspect", folder],
        "is sound": ["checkpoint", "verify", folder],
        "bfloat16, slices and logits verified": [
            "merge-checkpoint", *places, "--settings", '{"version": 1, "dtype": "float16"}',
            "--dtype", "bfloat16",
        ],
    }  # fmt: skip
    for words, arguments in commands.items():
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert result.exit_code == 0, result.output
        assert words in result.output
    assert (tmp_path / "model" / "model.safetensors").exists()


def test_transformers_generates_the_same_greedy_tokens_as_ours(
    tmp_path: Path, gpt2: GPT2, tokenizer: Path
) -> None:
    folder = write_checkpoint(tmp_path / "step_00000007", gpt2, 4, 2)
    model = merge(folder, tokenizer)
    theirs = GPT2LMHeadModel.from_pretrained(model).eval()
    words = AutoTokenizer.from_pretrained(model)
    settings = {"temperature": 0.0, "num_samples": 1, "max_new_tokens": 9, "min_new_tokens": 0}
    prompts = ["the cat", "hat", "a mat ñ"]
    found = {}
    straight = ModelFiles(tmp_path, tokenizer), ModelFiles(folder, tokenizer)
    for files in (ModelFiles(model), *straight):
        sampler = sampler_of(files.open(), SampleRun(**settings))
        found[files] = [sampled.text for sampled in draw_samples(sampler, prompts)]
    assert all(texts == found[straight[0]] for texts in found.values())
    for prompt, text in zip(prompts, found[straight[0]], strict=True):
        ids = words(prompt, return_tensors="pt")
        out = theirs.generate(**ids, max_new_tokens=9, do_sample=False)[0]
        new = out[ids["input_ids"].shape[1] :].tolist()
        new = new[: new.index(0)] if 0 in new else new
        assert text == Tokenizer.from_file(str(tokenizer)).decode(new)


def test_a_checkpoint_needs_its_tokenizer_and_an_empty_folder_is_no_model(
    tmp_path: Path, gpt2: GPT2
) -> None:
    folder = write_checkpoint(tmp_path / "step_00000007", gpt2, 1, 1)
    with pytest.raises(ConfigError, match="--tokenizer"):
        ModelFiles(folder).open()
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="neither a Hugging Face folder"):
        ModelFiles(tmp_path / "empty").open()


@pytest.mark.parametrize("verify", ["auto", "logits"])
def test_without_the_trainers_logits_only_slices_can_be_compared(
    tmp_path: Path, gpt2: GPT2, tokenizer: Path, verify: str
) -> None:
    folder = write_checkpoint(tmp_path / "step", gpt2, 1, 1)
    (folder / REFERENCE).unlink()
    reindex(folder, Index.read(folder))
    if verify == "auto":
        merge(folder, tokenizer)
    else:
        with pytest.raises(InputError, match="--verify slices"):
            merge(folder, tokenizer, verify=verify)


@pytest.mark.parametrize(
    "tokens", [torch.tensor([[VOCAB, 0]]), torch.zeros(1, 17, dtype=torch.int64), torch.zeros(3)]
)
def test_reference_tokens_that_are_not_the_models_are_refused(
    tmp_path: Path, gpt2: GPT2, tokenizer: Path, tokens: torch.Tensor
) -> None:
    folder = write_checkpoint(tmp_path / "step", gpt2, 1, 1)
    change(folder, REFERENCE, lambda tensors: tensors.update(tokens=tokens))
    with pytest.raises(InputError, match=r"reference\.safetensors: tokens"):
        merge(folder, tokenizer)
