"""What a user may do wrong ends in one message that says what, where, and what to do.

Every command, in this process, with files that are missing, of another kind, or damaged, and with
arguments that are wrong or contradict each other. Nothing but ``SystemExit`` may come out: a
traceback would fail the test.
"""

import json
import re
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.commands import COMMANDS, ROOT, Parameter, command_named

from web2gpt.cli import main

FORM = re.compile(r"web2gpt: [^\n]+?: .+[;.:,] \w.+", re.DOTALL)
"""Where, what, and what to do."""

QUIET = {("demo",), ("config", "schema"), ("config", "reference")}  # take no file
TABLES = {"missing": None, "folder": None, "object": b'{"a": 1}\n',
          "bytes": b"\xff\xfe\x00PK\x03\x04 \n\x00" * 9}  # fmt: skip
WRITTEN = {"output", "rejected", "stats", "work", "warc", "outcomes", "checkpoints", "bin", "idx"}
WRITES = {
    "extract": {"documents"}, "merge": {"corpus", "frames"}, "tokenizer": {"manifest"},
    "tokenize": {"documents"},
}  # fmt: skip
FURTHER = {  # beyond what is required, so that the files are reached
    "sample": ["--output", "out/samples.jsonl", "--work", "out/work"],
    "evaluate": ["--index", "FILE"],
    "estimate": ["--index", "FILE", "--config", "FILE"],
    "train": ["--train.device", "cpu"],
    "fetch": ["--contact", "crawler@example.org"],
    "tokenizer": ["--corpus", "FILE", "--frames", "FILE"],
    "tokens trace": ["--config", "FILE"],
    "watch": ["--data", "FILE", "--run", "FILE"],
    "tokens show": ["--tokenizer", "FILE", "--documents", "FILE"],
}
RECORDS = {"urls", "merge", "clean", "extract", "dedup signatures", "decontaminate count", "fetch",
           "decontaminate cut", "manifest"}  # fmt: skip
"""Commands that count a bad record and go on: content that is wrong is no fault of the command."""


class Done(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def web2gpt(tmp_path, monkeypatch, capfd):
    """Run a command in a folder of bad files."""
    for name, content in TABLES.items():
        if content is not None:
            (tmp_path / name).write_bytes(content)
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("web2gpt.cli.app", ROOT)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["web2gpt", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
            sys.exit(0)
        told = capfd.readouterr()
        return Done(int(ended.value.code or 0), told.out, told.err)

    return run


def arguments_of(words: tuple[str, ...], file: str) -> list[str]:
    """A command with all that it requires, every input being ``file``."""
    name = " ".join(words)
    arguments = list(words)
    for parameter in command_named(words).params:
        if parameter.required:
            value = value_of(parameter, name, file)
            arguments += [value] if parameter.param_type_name == "argument" else [
                parameter.opts[0], value,
            ]  # fmt: skip
    return arguments + [file if text == "FILE" else text for text in FURTHER.get(name, ())]


def value_of(parameter: Parameter, command: str, file: str) -> str:
    match parameter.name:
        case "source" | "tokens":
            return f"a={file}"
        case "kind":
            return "warc"
        case "step":
            return "3"
        case name if name in WRITTEN | WRITES.get(command, set()):
            return f"out/{name}"
    return file


@pytest.mark.parametrize("file", TABLES)
@pytest.mark.parametrize("words", [c for c in COMMANDS if c not in QUIET], ids=" ".join)
def test_a_bad_file_is_told(web2gpt, words: tuple[str, ...], file: str) -> None:
    done = web2gpt(*arguments_of(words, file))
    if " ".join(words) in RECORDS and file not in ("missing", "folder"):
        assert done.code in (0, 1)
    elif (words, file) == (("watch",), "folder"):
        assert done.code == 0, "nothing has begun there yet"
    else:
        assert done.code == 1
    if done.code:
        assert "web2gpt" not in done.out
        assert FORM.fullmatch(done.err.strip()), done.err
        assert not re.search(r"Errno|codec can't|indices must be|NoneType", done.err), done.err


@pytest.mark.parametrize("words", [c for c in COMMANDS if c not in QUIET], ids=" ".join)
def test_what_is_required_and_not_given_is_told(web2gpt, words: tuple[str, ...]) -> None:
    required = [one for one in command_named(words).params if one.required]
    done = web2gpt(*words)
    assert done.code == (2 if required else done.code)
    if required:
        assert "Missing" in done.err
        assert "--help" in done.err


TRAIN = "train --index object --tokenizer object --output o --checkpoints c --work w"
SHARD = "--rejected r --stats s --work w"


@pytest.mark.parametrize(
    ("line", "code", "told"),
    [
        ("no-such-command", 2, "No such command"),
        ("clean --no-such-option", 2, "No such option"),
        (f"clean --documents object --output o {SHARD} --min-tokens many", 2, "min-tokens"),
        (f"clean --documents object --output o {SHARD} --min-tokens -1", 1, "min_tokens: -1"),
        (f"clean --documents object --output o {SHARD} --settings [1]", 1, "--settings"),
        (f"clean --documents object --output o {SHARD} --settings {{", 1, "--settings: not JSON"),
        (f"merge --documents object --corpus c --frames f {SHARD} --held-out 2", 1, "held_out: 2"),
        (f"extract --kind jsonl --input object --documents d {SHARD}", 1, "--source"),
        (f"extract --kind csv --input object --documents d {SHARD}", 2, "--kind"),
        (f"urls --source object --output o {SHARD}", 1, "object"),
        (f"urls --source a=object --shards 0 --output o {SHARD}", 2, "--shards"),
        ("fetch --urls object --warc w --outcomes o --rejected r --stats s --work w", 1, "contact"),
        ("tokenizer --output o --manifest m --work w", 1, "tokenizer.path"),
        ("tokenizer --output o --manifest m --work w --vocab-size 9", 1, "vocab_size: 9"),
        ("index --tokens a --tokenizer object --output o --work w", 1, "--tokens a"),
        ("index --tokens a=b --weight a=-1 --tokenizer object --output o --work w", 1, "a=-1"),
        ("index --tokens a=b --split x --tokenizer object --output o --work w", 1, "split"),
        ("tokens trace --index object --step 0", 2, "--step"),
        ("tokens trace --index object --step 3", 1, "--global-batch-size"),
        (f"{TRAIN} --train.steps 3 --train.tokens 9", 1, "one of steps, samples and tokens"),
        (f"{TRAIN} --parallel.tensor 3", 1, "parallel.tensor = 3"),
        (f"{TRAIN} --train.global-batch-size 9 --train.micro-batch-size 2", 1, "multiple of"),
        (f"{TRAIN} --train.precision bf16 --parallel.zero 0 --train.device cpu", 1, "zero: 1"),
        (f"{TRAIN} --train.continue-from missing --train.device cpu", 1, "object"),
        ("estimate --model.n-head 3", 1, "n_embd = 128 is not a multiple of n_head = 3"),
        ("estimate --gpu-memory 0.001", 1, "web2gpt: parallel: this layout needs"),
        ("sample --model folder", 1, "--interactive"),
        ("sample --model folder --output o --work w --temperature -1", 1, "temperature: -1"),
        ("evaluate --model folder --output o --work w", 1, "--texts"),
        ("dedup buckets --signatures object --output o --work w --threshold 2", 1, "threshold: 2"),
        ("decontaminate count --documents object --output o --work w", 1, "against"),
        ("checkpoint reshape folder --output o --tensor 0", 2, "--tensor"),
        ("report --data folder --run folder --output o", 1, "folder, folder: neither holds"),
        ("manifest folder --output o", 1, "folder: no file in it"),
        ("manifest object --output object/o", 1, "object"),
        ("statistics --part object --output o --limit 2", 2, "--limit"),
        ("config resolve --settings {} --output o", 1, "input: missing"),
    ],
)  # fmt: skip
def test_wrong_and_contradictory_arguments_are_told(web2gpt, line: str, code: int, told: str):
    done = web2gpt(*line.split())
    assert done.code == code, done.err
    assert told in done.err
    assert "web2gpt" not in done.out
    assert not list(Path().glob("o")), "nothing is written"


def test_shards_of_two_stages_are_not_added_up(web2gpt) -> None:
    for stage in ("clean", "dedup"):
        counts = {"stage": stage, "unit": "documents", "in": 0, "kept": 0, "dropped": {},
                  "errors": {}, "out": 0, "bytes": {"in": 0, "out": 0}, "figures": {},
                  "time": {}}  # fmt: skip
        Path(stage).write_text(json.dumps(counts))
    done = web2gpt("statistics", "--part", "clean", "--part", "dedup", "--output", "o")
    assert done.code == 1
    assert "give the shards of one stage" in done.err


def test_what_the_system_refuses_is_told(web2gpt, tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    done = web2gpt("demo", "--output", "object/site")
    assert done.code == 1
    assert done.err.startswith("web2gpt: object/site: ")
