"""Reading modules in a child process that may die, hang, print, or find nothing."""

from pathlib import Path

import pytest

from web2gpt.demo import modules
from web2gpt.demo.modules import ModuleReader


def test_reads_words_of_module_functions_classes_and_methods() -> None:
    with ModuleReader() as reader:
        module = reader.read("json")
    assert module is not None
    assert module["submodules"] == ["json.decoder", "json.encoder", "json.scanner", "json.tool"]
    entries = {entry["name"]: entry for entry in module["entries"]}
    assert entries["loads"]["doc"].startswith("Deserialize ``s``")
    members = {member["name"] for member in entries["JSONDecoder"]["members"]}
    assert members == {"decode", "raw_decode"}


def test_a_module_that_prints_exits_or_is_not_there_costs_itself_only(tmp_path: Path) -> None:
    (tmp_path / "talker.py").write_text('"""Doc."""\nimport os\nprint("hi")\nos.write(1, b"ho")')
    (tmp_path / "quitter.py").write_text("raise SystemExit(3)")
    (tmp_path / "killer.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    with ModuleReader(path=tmp_path) as reader:
        talker = reader.read("talker")
        assert talker is not None
        assert talker["doc"] == "Doc."
        assert reader.read("quitter") is None
        assert reader.read("killer") is None
        assert reader.read("no_such_module") is None
        assert reader.read("talker") == talker


def test_a_module_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sleeper.py").write_text("while True: pass")
    (tmp_path / "sound.py").write_text('"""Doc."""')
    monkeypatch.setattr(modules, "TIMEOUT", 1.0)
    with ModuleReader(path=tmp_path) as reader:
        assert reader.read("sleeper") is None
        monkeypatch.setattr(modules, "TIMEOUT", 60.0)
        assert reader.read("sound") is not None
