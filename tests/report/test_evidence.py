"""Whatever a run left is read; what it did not leave is named."""

from pathlib import Path

import pytest
from tests.report.conftest import RunFolders

from web2gpt.report.evidence import Change, gather


def test_everything_is_found(folders: RunFolders) -> None:
    found = gather(folders.data, folders.run)
    assert found.missing == []
    assert (found.data, found.run) == ("corpus", "first")
    assert [stage.stage for stage in found.stages] == ["urls", "clean", "tokenize"]
    assert len(found.train) == 30
    assert (found.valid.steps, found.valid.values) == ((100, 200), (4.5, 3.5))
    assert found.evaluation == (("loss", 3.25), ("perplexity", 25.79))
    assert found.manifest[0] == ("versions.torch", "2.13.0")


def test_what_differs_from_the_defaults_is_told(folders: RunFolders) -> None:
    assert Change("model.n_layer", 6, 4) in gather(folders.data, folders.run).changes
    assert len(gather(folders.data, folders.run).changes) == 1


def test_costs_are_those_of_all_jobs_of_a_rule(folders: RunFolders) -> None:
    extract, train = gather(folders.data, folders.run).costs
    assert (extract.rule, extract.jobs, extract.seconds, extract.memory) == ("extract", 2, 15, 100)
    assert (train.rule, train.jobs, train.seconds, train.memory) == ("train", 1, 60, 900)


def test_a_step_made_again_after_a_restart_counts_once(folders: RunFolders) -> None:
    with (folders.run / "train" / "metrics.jsonl").open("a") as file:
        file.write('{"step": 20, "loss": 9.0}\n{"step": 100, "valid_loss": 8.0}\n')
    found = gather(folders.data, folders.run)
    assert len(found.train) == 30
    assert found.train.steps == tuple(range(10, 310, 10))
    assert found.train.values[1] == 9.0
    assert found.valid.values == (8.0, 3.5)


def test_empty_folders_give_only_what_is_missing(tmp_path: Path) -> None:
    found = gather(tmp_path, tmp_path)
    assert found.missing == [
        "train/metrics.jsonl", "config.yaml", "stats/", "samples/samples.jsonl",
        "evaluation/evaluation.json", "manifest.json",
    ]  # fmt: skip
    assert not found.stages
    assert not found.train


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"{", b"[1]", b'{"in": 1}', b"null", b'"x"'])
def test_damaged_files_cost_their_section_only(folders: RunFolders, content: bytes) -> None:
    names = ("train/metrics.jsonl", "samples/samples.jsonl", "evaluation/evaluation.json",
             "config.yaml", "manifest.json", "benchmarks/train.jsonl")  # fmt: skip
    for name in names:
        (folders.run / name).write_bytes(content)
    (folders.data / "stats" / "clean.json").write_bytes(content)
    found = gather(folders.data, folders.run)
    assert [stage.stage for stage in found.stages] == ["urls", "tokenize"]
    assert "stats/clean.json (unreadable)" in found.missing
    assert [cost.rule for cost in found.costs][:1] == ["extract"]


def test_odd_values_in_the_training_log_are_passed_over(folders: RunFolders) -> None:
    (folders.run / "train" / "metrics.jsonl").write_text(
        '{"loss": 1}\n{"step": "x", "loss": 1}\n{"step": 1, "loss": null}\n'
        '{"step": 2, "loss": "high"}\n{"step": 3, "loss": true}\n{"step": 4, "loss": 2}\n'
    )
    found = gather(folders.data, folders.run)
    assert (found.train.steps, found.train.values) == ((4,), (2.0,))
