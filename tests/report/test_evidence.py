"""Whatever a run left is read; what it did not leave is named."""

import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.report.conftest import RunFolders

from web2gpt.report.evidence import gather
from web2gpt.report.settings import Change
from web2gpt.report.training import Curve


def test_everything_is_found(folders: RunFolders) -> None:
    found = gather(folders.data, folders.run)
    assert found.missing == ()
    assert (found.data, found.run) == ("corpus", "first")
    assert [stage.stage for stage in found.stages] == ["urls", "clean", "tokenize"]
    assert len(found.training.loss) == 30
    assert found.training.valid == (("valid_loss", Curve((100, 200), (4.5, 3.5))),)
    assert found.evaluation == (("loss", 3.25), ("perplexity", 25.79))
    assert found.versions == (("python", "3.11.7"), ("torch", "2.13.0"))
    assert found.files == (("corpus.bin", 7, "ab" * 32),)


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
    assert len(found.training.loss) == 30
    assert found.training.loss.steps == tuple(range(10, 310, 10))
    assert found.training.loss.values[1] == 9.0
    assert found.training.valid[0][1].values == (8.0, 3.5)


def test_empty_folders_give_only_what_is_missing(tmp_path: Path) -> None:
    found = gather(tmp_path, tmp_path)
    assert found.missing == (
        "train/metrics.jsonl", "config.yaml", "stats/", "manifest.json",
        "tokenizer/tokenizer.json", "samples/samples.jsonl", "evaluation/evaluation.json",
    )  # fmt: skip
    assert not found.stages
    assert not found.training


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"{", b"[1]", b'{"in": 1}', b"null", b'"x"'])
def test_damaged_files_cost_their_section_only(folders: RunFolders, content: bytes) -> None:
    names = ("train/metrics.jsonl", "samples/samples.jsonl", "evaluation/evaluation.json",
             "config.yaml", "manifest.json", "benchmarks/train.jsonl",
             "checkpoints/0123/starts.jsonl")  # fmt: skip
    for name in names:
        (folders.run / name).write_bytes(content)
    for name in ("stats/clean.json", "dedup/signatures/a-0000.parquet", "dedup/clusters.parquet",
                 "documents/a-0000.jsonl.zst", "rejected/clean/a-0000.jsonl.zst",
                 "corpus/corpus.frames.parquet", "tokenizer/tokenizer.json"):  # fmt: skip
        (folders.data / name).write_bytes(content)
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
    assert (found.training.loss.steps, found.training.loss.values) == ((4,), (2.0,))


def test_documents_are_counted_by_domain_language_and_length(folders: RunFolders) -> None:
    found = gather(folders.data, folders.run)
    assert (found.before.total, found.before.seen, found.after.total) == (8, 8, 4)
    assert found.before.domains == {"example.org": 4, "y.test": 2, "x.test": 1, "192.0.2.7": 1}
    assert found.after.domains == {"y.test": 2, "example.org": 1, "192.0.2.7": 1}
    assert found.after.languages == {"en": 4}
    assert found.dropped_languages == {"fr": 1}
    assert sum(found.after.lengths.values()) == 4


def test_counts_of_a_sample_are_scaled_up(folders: RunFolders, monkeypatch) -> None:
    path = folders.data / "dedup" / "signatures" / "a-0000.parquet"
    pq.write_table(pq.read_table(path), path, row_group_size=2)
    monkeypatch.setattr("web2gpt.report.survey.MAX_ROWS", 4)
    before = gather(folders.data, folders.run).before
    assert (before.total, before.seen, before.is_sample) == (8, 4, True)
    assert sum(before.domains.values()) == 8


def test_copies_stand_beside_what_is_kept(folders: RunFolders) -> None:
    duplicates = gather(folders.data, folders.run).duplicates
    assert duplicates.sizes == {3: 1}
    (copy,) = duplicates.examples  # the exact one is no sight
    assert (copy.similarity, copy.kept_url) == (0.9, "http://a.example.org/0")
    assert copy.kept[0] == copy.removed[0], "what is the same in both"
    assert [text.strip() for text, differs in copy.removed if differs] == ["word " * 9 + "word"]
    assert not any(differs for _, differs in copy.kept)


def test_the_tokenizer_is_described(folders: RunFolders) -> None:
    facts = gather(folders.data, folders.run).vocabulary
    assert facts is not None
    assert (facts.size, facts.kind, facts.bytes_per_token) == (4, "BPE", 4.0)
    assert facts.longest == (" longest", "ß", "a")


def test_restarts_and_steps_not_applied_are_told(folders: RunFolders) -> None:
    training = gather(folders.data, folders.run).training
    assert training.restarts == (120,)
    assert training.not_applied == (50,)
    assert training.estimated == 0.5


def test_a_run_under_way_is_read_where_it_is_written(folders: RunFolders) -> None:
    published = folders.run / "train" / "metrics.jsonl"
    writing = folders.run / "checkpoints" / "0123" / "metrics.jsonl"
    writing.write_text('{"step": 1, "loss": 7.5}\n')
    os.utime(published, (1, 1))
    assert gather(folders.data, folders.run).training.loss.values == (7.5,)
