"""The command sample: files in, samples.jsonl and readable text out."""

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from web2gpt.checkpoint.open import ModelFiles
from web2gpt.cli import app
from web2gpt.config.outputs import DEFAULT_PROMPTS, Sample, SampleRun
from web2gpt.errors import ConfigError, InputError
from web2gpt.model.device import prepare_device
from web2gpt.sample.drawable import Drawable
from web2gpt.sample.generate import Sampler
from web2gpt.sample.live import converse, held_back
from web2gpt.sample.prompts import read_prompts
from web2gpt.sample.stage import SampleFiles, sample_model


def run(twin: Any, root: Path, **settings: Any) -> list[dict[str, Any]]:
    output = root / "samples" / "samples.jsonl"
    files = SampleFiles(ModelFiles(twin.folder), output, root / "work")
    sample_model(files, SampleRun(**{"max_new_tokens": 12, "device": "cpu", **settings}))
    return [json.loads(line) for line in output.read_text().splitlines()]


def test_samples_stand_in_the_order_of_the_prompts(
    twin: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    samples = run(twin, tmp_path, prompts=("the", "a cat"), num_samples=3)
    assert [sample["prompt"] for sample in samples] == ["the"] * 3 + ["a cat"] * 3
    for sample in samples:
        assert list(sample) == ["prompt", "text", "length", "finished"]
        assert sample["text"].strip()
    printed = capsys.readouterr().out
    assert all(f"[{s['prompt']}]{s['text']}" in printed for s in samples)
    assert printed.splitlines()[-1].startswith("sample: 6 texts")


def test_the_same_settings_give_the_same_bytes(twin: Any, tmp_path: Path) -> None:
    first = run(twin, tmp_path / "a", prompts=("the", "a"), seed=3)
    assert first == run(twin, tmp_path / "b", prompts=("the", "a"), seed=3, batch_size=1)
    assert first != run(twin, tmp_path / "c", prompts=("the", "a"), seed=4)


def test_prompts_come_from_a_text_file_up_to_its_last_line(tmp_path: Path) -> None:
    path = tmp_path / "prompts.txt"
    path.write_text("first\r\n\n  stop here\nlast without an end")
    assert read_prompts(Sample(prompts=("given",), prompts_file=str(path))) == [
        "given", "first", "  stop here", "last without an end",
    ]  # fmt: skip


def test_who_gives_prompts_gets_no_others(tmp_path: Path) -> None:
    path = tmp_path / "prompts.txt"
    path.write_text("mine\n")
    assert read_prompts(Sample(prompts_file=str(path))) == ["mine"]
    assert read_prompts(Sample(prompts=("another",))) == ["another"]
    assert read_prompts(Sample()) == list(DEFAULT_PROMPTS)


def test_prompts_come_from_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "prompts.jsonl.gz"
    lines = [{"prompt": "two\nlines"}, {"text": "of a document"}, {"prompt": ""}]
    with gzip.open(path, "wt") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    prompts = read_prompts(Sample(prompts=(), prompts_file=str(path)))
    assert prompts == ["two\nlines", "of a document", ""]


def test_bad_prompts_are_named_by_line(tmp_path: Path) -> None:
    path = tmp_path / "prompts.jsonl"
    path.write_text('{"prompt": "good"}\n{"question": "bad"}\n')
    with pytest.raises(InputError, match="record 2"):
        read_prompts(Sample(prompts=(), prompts_file=str(path)))
    path.write_text('{"prompt": "good"}\nnonsense\n')
    with pytest.raises(InputError, match="line 2"):
        read_prompts(Sample(prompts=(), prompts_file=str(path)))
    (tmp_path / "latin.txt").write_bytes(b"good\ncaf\xe9\n")
    with pytest.raises(InputError, match="line 2: not UTF-8"):
        read_prompts(Sample(prompts=(), prompts_file=str(tmp_path / "latin.txt")))
    with pytest.raises(InputError, match="cannot be opened"):
        read_prompts(Sample(prompts=(), prompts_file=str(tmp_path / "none.txt")))
    with pytest.raises(InputError, match="no prompts"):
        read_prompts(Sample(prompts=()))


def test_text_without_a_prompt_starts_at_end_of_text(twin: Any, tmp_path: Path) -> None:
    assert twin.drawable.encode("") == [0]
    (sample,) = run(twin, tmp_path, prompts=("",), num_samples=1)
    assert sample["prompt"] == "" and sample["text"].strip()


def test_a_tokenizer_that_does_not_fit_is_refused(twin: Any) -> None:
    with pytest.raises(InputError, match="do not fit the model's vocabulary of 100"):
        Drawable.of(twin.folder / "tokenizer.json", 100, 0)


def test_a_missing_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="put the model's tokenizer there"):
        Drawable.of(tmp_path / "tokenizer.json", 100, 0)


def test_a_gpu_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert prepare_device("auto", 1).type == "cpu"
    with pytest.raises(ConfigError, match="no GPU"):
        prepare_device("cuda", 1)


def test_the_command_takes_section_and_seed_as_json_and_flags(twin: Any, tmp_path: Path) -> None:
    section = Sample(prompts=("a",), max_new_tokens=5, device="cpu").model_dump(mode="json")
    settings = json.dumps({"version": 1, **section, "seed": 5})
    places = ["--model", twin.folder, "--output", tmp_path / "s.jsonl", "--work", tmp_path / "work"]
    arguments = ["sample", *places, "--settings", settings, "--num-samples", 1, "--top-k", 3]
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    (line,) = (tmp_path / "s.jsonl").read_text().splitlines()
    (wanted,) = twin.sample(["a"], seed=5, num_samples=1, max_new_tokens=5, top_k=3)
    assert json.loads(line)["text"] == wanted.text


def test_samples_stand_readable_beside_the_lines(twin: Any, tmp_path: Path) -> None:
    samples = run(twin, tmp_path, prompts=("the", "stop\nhere"), num_samples=2)
    page = (tmp_path / "samples" / "samples.txt").read_text()
    for sample in samples:
        end = "" if sample["finished"] else " …"
        assert f"[{sample['prompt']}]{sample['text']}{end}\n" in page


def test_streamed_texts_are_those_that_are_written(
    twin: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = {"prompts": ("the", "ñandú"), "num_samples": 2, "temperature": 1.5, "seed": 3}
    written = run(twin, tmp_path / "a", **settings)
    capsys.readouterr()
    files = SampleFiles(ModelFiles(twin.folder), tmp_path / "b.jsonl", tmp_path / "work")
    sample_model(files, SampleRun(**{"max_new_tokens": 12, "device": "cpu", **settings}), live=True)
    assert (tmp_path / "b.jsonl").read_bytes() == (
        tmp_path / "a" / "samples" / "samples.jsonl"
    ).read_bytes()
    shown = capsys.readouterr().out
    ends = ["" if sample["finished"] else " …" for sample in written]
    texts = [f"[{s['prompt']}]{s['text']}{end}\n" for s, end in zip(written, ends, strict=True)]
    assert shown.startswith("".join(texts))


def test_a_stop_string_is_never_shown_not_even_its_start() -> None:
    assert held_back("and so st", ("stop",)) == 2
    assert held_back("and so stop it", ("stop",)) == len("stop it")
    assert held_back("and so", ("stop", "so far")) == 2
    assert held_back("and", ()) == 0


def test_a_dialogue_answers_every_line_and_repeats_itself(twin: Any) -> None:
    settings = {"temperature": 1.5, "num_samples": 2, "max_new_tokens": 6, "stop": ("zzz",)}
    wanted = twin.sample(["stop the cat", ""], **settings)
    sampler = Sampler(twin.ours, twin.stated.model, twin.drawable, SampleRun(**settings))
    screen = io.StringIO()
    converse(sampler, ["stop the cat\n", "stop the cat\n", "\n"], screen)
    for sampled in wanted[:3]:
        assert f"> [{sampled.prompt}]{sampled.text}" in screen.getvalue()


def test_the_command_takes_prompts_from_the_terminal(twin: Any) -> None:
    arguments = ["sample", "--model", str(twin.folder), "--interactive", "--max-new-tokens", "3"]
    typed = b"the caf\xe9\nlast"
    result = CliRunner().invoke(app, [*arguments, "--device", "cpu"], input=typed)
    assert result.exit_code == 0, result.output
    assert result.output.count("> [") == 2 and "[last]" in result.output
    assert "[the caf\ufffd]" in result.output
    refused = CliRunner().invoke(app, ["sample", "--model", str(twin.folder)])
    assert isinstance(refused.exception, ConfigError)
