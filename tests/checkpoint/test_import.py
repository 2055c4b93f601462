"""Models from elsewhere: the known model comes out, or a refusal; never code that runs."""

import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import megatron_files
import pytest
import torch
from megatron_files import write_layers, write_ranks
from transformers import GPT2Config, GPT2LMHeadModel
from typer.testing import CliRunner

from web2gpt.checkpoint import importing, megatron, untrusted
from web2gpt.checkpoint.importing import import_checkpoint
from web2gpt.checkpoint.untrusted import globals_of, read_untrusted
from web2gpt.cli import app
from web2gpt.config.outputs import ImportCheckpoint
from web2gpt.errors import ConfigError, InputError

VOCAB = 263


@pytest.fixture(scope="module")
def theirs() -> GPT2LMHeadModel:
    torch.manual_seed(1)
    sizes = {"n_layer": 2, "n_embd": 32, "n_head": 4, "n_positions": 16}
    model = GPT2LMHeadModel(GPT2Config(**sizes, vocab_size=VOCAB, initializer_range=0.3)).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):  # zeros would hide a bias that went astray
                parameter.normal_()
    return model


@pytest.fixture(autouse=True)
def child(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Spare most tests the start of a process: the same reading, here. ``real_child`` does not."""
    if "real_child" in request.keywords:
        return

    def read_here(paths: list[Path], folder: Path) -> dict[Path, untrusted.Contents]:
        places = {path: folder / str(number) for number, path in enumerate(paths)}
        for path, place in places.items():
            place.mkdir()
            untrusted.convert(path, place)
        return {path: untrusted.Contents.of(place) for path, place in places.items()}

    for module in (megatron, importing):
        monkeypatch.setattr(module, "read_untrusted", read_here)


def imported(source: Path, tokenizer: Path, **settings: Any) -> Path:
    output = source.parent / "model"
    shutil.rmtree(output, ignore_errors=True)
    import_checkpoint(source, output, tokenizer, ImportCheckpoint(**settings))
    return output


def same_logits(folder: Path, theirs: GPT2LMHeadModel) -> bool:
    """Whether transformers computes the same from the folder as from the model."""
    found, info = GPT2LMHeadModel.from_pretrained(folder, output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    assert found.config.vocab_size == VOCAB
    tokens = torch.arange(16)[None] * 17 % VOCAB
    with torch.no_grad():
        apart = (found.eval()(tokens).logits - theirs(tokens).logits).abs().max()
    return bool(apart < 1e-5)


@pytest.mark.parametrize("tensor", [1, 2])
@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_ranks_in_each_order_of_query_key_value(
    theirs: GPT2LMHeadModel, tmp_path: Path, tokenizer: Path, version: int, tensor: int
) -> None:
    source = write_ranks(theirs, tmp_path / "source", version=version, tensor=tensor)
    assert same_logits(imported(source, tokenizer), theirs)
    if tensor == 2:  # the orders are not each other's
        wrong = imported(source, tokenizer, checkpoint_version=float((version + 1) % 3))
        assert not same_logits(wrong, theirs)


def test_pipeline_stages_with_their_tied_copy(
    theirs: GPT2LMHeadModel, tmp_path: Path, tokenizer: Path
) -> None:
    source = write_ranks(theirs, tmp_path / "source", tensor=2, pipeline=2)
    assert same_logits(imported(source, tokenizer), theirs)


def test_files_of_torch_before_its_zip_form(
    theirs: GPT2LMHeadModel, tmp_path: Path, tokenizer: Path
) -> None:
    source = write_ranks(theirs, tmp_path / "source", version=0, zipped=False)
    assert same_logits(imported(source, tokenizer), theirs)


@pytest.mark.parametrize("tensor", [1, 4])
def test_layer_files_of_deepspeeds_pipeline(
    theirs: GPT2LMHeadModel, tmp_path: Path, tokenizer: Path, tensor: int
) -> None:
    source = write_layers(theirs, tmp_path / "source", tensor=tensor)
    assert same_logits(imported(source, tokenizer), theirs)
    for path in source.glob("*/mp_rank*"):
        path.unlink()  # with them goes what was stated
    with pytest.raises(ConfigError, match="--n-head"):
        imported(source, tokenizer)
    with pytest.raises(ConfigError, match="--checkpoint-version"):
        imported(source, tokenizer, n_head=4)
    assert same_logits(imported(source, tokenizer, n_head=4, checkpoint_version=3.0), theirs)


def test_dtype_is_kept_or_chosen(theirs: GPT2LMHeadModel, tmp_path: Path, tokenizer: Path) -> None:
    source = write_ranks(theirs, tmp_path / "source", tensor=2, dtype=torch.float16)
    kept = GPT2LMHeadModel.from_pretrained(imported(source, tokenizer), dtype="auto")
    assert kept.dtype == torch.float16
    wide = GPT2LMHeadModel.from_pretrained(imported(source, tokenizer, dtype="float32"))
    assert wide.dtype == torch.float32
    assert torch.equal(wide.transformer.wpe.weight, theirs.transformer.wpe.weight.half().float())


def test_the_activation_is_the_one_of_the_settings(
    theirs: GPT2LMHeadModel, tmp_path: Path, tokenizer: Path
) -> None:
    def activation(**args: Any) -> str:
        source = write_ranks(theirs, tmp_path / "source", **args)
        config = json.loads((imported(source, tokenizer) / "config.json").read_text())
        return str(config["activation_function"])

    assert activation() == activation(bias_gelu_fusion=True) == "gelu_new"
    assert activation(bias_gelu_fusion=False) == "gelu"
    assert activation(bias_gelu_fusion=False, openai_gelu=True) == "gelu_new"


def edit(source: Path, pattern: str, change: Any) -> None:
    """Change a file's content in place."""
    (path,) = source.glob(pattern)
    with megatron_files.megatron_classes():
        content = torch.load(path, weights_only=False)
    change(content)
    megatron_files.save(content, path)


def test_replicas_that_drifted_apart_are_refused_by_name_and_size(
    theirs: GPT2LMHeadModel, tmp_path: Path, tokenizer: Path
) -> None:
    source = write_layers(theirs, tmp_path / "source", tensor=2)
    edit(source, "*/layer_04-model_01*", lambda c: c["input_layernorm.bias"][3].add_(0.25))
    with pytest.raises(InputError, match=r"h\.1\.ln_1\.bias .* 1 values of 32 .* 0\.25"):
        imported(source, tokenizer)
    source = write_ranks(theirs, tmp_path / "tied", pipeline=2)
    edit(
        source, "*/mp_rank_00_001/*",
        lambda c: c["model"]["word_embeddings_for_head"]["weight"][0].zero_(),
    )  # fmt: skip
    with pytest.raises(InputError, match=r"wte\.weight is not the same"):
        imported(source, tokenizer)
    assert not (tmp_path / "model").exists()
    assert not list(tmp_path.glob(".tmp*"))


def test_missing_and_unknown_tensors_and_other_architectures_are_refused(
    theirs: GPT2LMHeadModel, tmp_path: Path, tokenizer: Path
) -> None:
    source = write_layers(theirs, tmp_path / "source", tensor=2)
    edit(source, "*/layer_03-model_00*", lambda c: c.pop("mlp.dense_h_to_4h.bias"))
    with pytest.raises(InputError, match=r"h\.0\.mlp\.c_fc\.bias is there of tensor ranks \[1\]"):
        imported(source, tokenizer)
    edit(source, "*/layer_03-model_00*", lambda c: c.update({"attention.rotary": torch.ones(2)}))
    with pytest.raises(InputError, match=r"attention\.rotary is not a parameter of GPT-2"):
        imported(source, tokenizer)
    for path in source.glob("*/layer_03*"):
        path.unlink()
    for args in ({"swiglu": True}, {"embed_layernorm": True}, {"normalization": "RMSNorm"}):
        with pytest.raises(InputError, match=f"{next(iter(args))} = .* is not computed here"):
            imported(write_ranks(theirs, tmp_path / "other", **args), tokenizer)


@pytest.mark.parametrize("numbers", [(3, 4), (99, 100), (3, 5)])
def test_layers_are_in_the_order_of_their_numbers_and_none_is_missed(
    theirs: GPT2LMHeadModel, tmp_path: Path, tokenizer: Path, numbers: tuple[int, int]
) -> None:
    source = write_layers(theirs, tmp_path / "source")
    folder = next(source.glob("global_step*"))
    blocks = [path for path in sorted(folder.glob("layer_*")) if has_block(path)]
    for path, number in zip(reversed(blocks), reversed(numbers), strict=True):
        path.rename(path.with_name(f"layer_{number:02d}-model_00-model_states.pt"))
    if numbers[1] - numbers[0] == 1:
        assert same_logits(imported(source, tokenizer), theirs)
    else:
        with pytest.raises(InputError, match=r"layer files of blocks \[3, 5\]"):
            imported(source, tokenizer)


def has_block(path: Path) -> bool:
    return "input_layernorm.weight" in torch.load(path, weights_only=True)


def test_a_stage_that_is_missing_is_no_shorter_model(
    theirs: GPT2LMHeadModel, tmp_path: Path, tokenizer: Path
) -> None:
    source = write_ranks(theirs, tmp_path / "source", pipeline=2)
    last = next(source.glob("*/mp_rank_00_001"))
    last.rename(last.with_name("mp_rank_00_002"))
    with pytest.raises(InputError, match=r"pipeline stages \[0, 2\]"):
        imported(source, tokenizer)
    with pytest.raises(InputError, match="trained with num_layers = 3"):
        imported(write_ranks(theirs, tmp_path / "other", num_layers=3), tokenizer)


@pytest.mark.parametrize(
    ("key", "shape"), [("position_embeddings.weight", (16,)), ("word_embeddings.weight", ())]
)
def test_embeddings_of_other_forms_are_refused(
    theirs: GPT2LMHeadModel, tmp_path: Path, tokenizer: Path, key: str, shape: tuple[int, ...]
) -> None:
    source = write_ranks(theirs, tmp_path / "source", version=0)
    (path,) = source.glob("*/*/*.pt")
    whole = {"position_embeddings.weight": (16, 32), "word_embeddings.weight": (264, 32)}
    model = {name: torch.zeros(size) for name, size in (whole | {key: shape}).items()}
    torch.save({"model": {"language_model": {"embedding": model}}}, path)
    with pytest.raises(InputError, match="no embedding's; take another model"):
        imported(source, tokenizer)


def test_dictionaries_that_hold_each_other_unfold_no_further_than_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(untrusted, "_NODES", 1000)
    laughs: dict[str, Any] = {}
    for _ in range(26):
        laughs = {"a": laughs, "b": laughs}
    torch.save(laughs, tmp_path / "laughs.pt")
    with pytest.raises(untrusted.RefusedError, match="more than 1,000 values"):
        untrusted.convert(tmp_path / "laughs.pt", tmp_path)


def test_a_folder_of_neither_form_is_refused(
    theirs: GPT2LMHeadModel, tmp_path: Path, tokenizer: Path
) -> None:
    (tmp_path / "source").mkdir()
    with pytest.raises(InputError, match=r"no mp_rank_XX/model_optim_rng\.pt"):
        imported(tmp_path / "source", tokenizer)
    with pytest.raises(InputError, match="no such folder"):
        imported(tmp_path / "nowhere", tokenizer)
    (tmp_path / "source" / "latest").write_text("../elsewhere")
    with pytest.raises(InputError, match="no folder beside it"):
        imported(tmp_path / "source", tokenizer)


class Evil:
    """Would run a command when unpickled."""

    def __init__(self, marker: Path):
        self.marker = marker

    def __reduce__(self) -> Any:
        import os

        return os.system, (f"touch {self.marker}",)


@pytest.mark.real_child
@pytest.mark.parametrize("zipped", [True, False])
def test_a_malicious_pickle_is_refused_and_runs_nothing(
    theirs: GPT2LMHeadModel, tmp_path: Path, tokenizer: Path, zipped: bool
) -> None:
    source = write_ranks(theirs, tmp_path / "source", version=0)
    (path,) = source.glob("*/*/*.pt")
    marker = tmp_path / "ran"
    torch.save({"model": Evil(marker)}, path, _use_new_zipfile_serialization=zipped)
    with pytest.raises(InputError, match=r"calls for posix\.system.*refused"):
        imported(source, tokenizer)
    assert not marker.exists()
    with pytest.raises(pickle.UnpicklingError):
        torch.load(path, weights_only=True)


def test_other_calls_and_garbage_are_refused_too(tmp_path: Path) -> None:
    files = {"empty": b"", "text": b"not a pickle", "zip": b"PK\x03\x04" + b"x" * 50}
    for name in ("builtins eval", "builtins getattr", "torch.hub load", "megatron.x y"):
        call = f"c{name.replace(' ', chr(10))}\n(X\x01\x00\x00\x00atR.".encode()
        head = (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True})
        start = b"".join(pickle.dumps(one, protocol=2) for one in head)
        files[name] = start + b"\x80\x02" + call + pickle.dumps([], protocol=2)
    for name, content in files.items():
        path = tmp_path / name
        path.write_bytes(content)
        (place := tmp_path / f"{name} read").mkdir()
        if name == "megatron.x y":  # what has a stand-in is made of it, and left out
            untrusted.convert(path, place)
            assert not untrusted.Contents.of(place).values
        else:
            with pytest.raises((untrusted.RefusedError, pickle.UnpicklingError)):
                untrusted.convert(path, place)


def test_only_tensors_and_plain_values_come_through(
    theirs: GPT2LMHeadModel, tmp_path: Path
) -> None:
    source = write_ranks(theirs, tmp_path / "source", tensor=2)
    path = source / "iter_0000005" / "mp_rank_01" / "model_optim_rng.pt"
    assert "argparse.Namespace" in globals_of(path)
    assert "megatron.model.enums.PositionEmbeddingType" in globals_of(path)
    values = read_untrusted([path], tmp_path / "work")[path].values
    assert values["args.num_attention_heads"] == 4
    assert values["args.params_dtype"] == "torch.float16"
    assert values["checkpoint_version"] == 3.0
    assert not any(key.startswith(("optimizer", "args.position_type", "np_rng")) for key in values)


def test_a_hugging_face_folder_with_pickled_weights_and_padding(
    theirs: GPT2LMHeadModel, tmp_path: Path, tokenizer: Path
) -> None:
    padded = GPT2LMHeadModel(
        GPT2Config(**{**theirs.config.to_dict(), "vocab_size": VOCAB + 57})
    ).eval()
    padded.load_state_dict(
        theirs.state_dict()
        | {
            key: torch.cat([theirs.state_dict()[key], torch.full((57, 32), 9.0)])
            for key in ("transformer.wte.weight", "lm_head.weight")
        }
    )
    source = tmp_path / "source"
    padded.save_pretrained(source)
    (source / "model.safetensors").unlink()
    torch.save(padded.state_dict(), source / "pytorch_model.bin")
    assert same_logits(imported(source, tokenizer), theirs)


@pytest.mark.real_child
def test_the_command_says_what_it_made(
    theirs: GPT2LMHeadModel, tmp_path: Path, tokenizer: Path
) -> None:
    source = write_ranks(theirs, tmp_path / "source", tensor=2)
    arguments = ["checkpoint", "import", source, "--output", tmp_path / "model"]
    arguments += ["--tokenizer", tokenizer, "--dtype", "bfloat16"]
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    assert "2 tensor ranks, version 3: 28 tensors" in result.output
    assert "bfloat16" in result.output
    again = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert isinstance(again.exception, InputError) and "there already" in str(again.exception)
