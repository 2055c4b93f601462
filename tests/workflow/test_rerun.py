"""Rerunning single stages remakes what depends on the change, and nothing else (by dry runs)."""

from copy import deepcopy
from typing import Any

import pytest
from tests.workflow.project import Project

DATA = "results/data/small"


def changed(project: Project, section: str, **values: Any) -> None:
    config = deepcopy(project.config)
    config.setdefault(section, {}).update(values)
    project.write_config(config)


def test_a_finished_run_has_nothing_to_do(finished: Project) -> None:
    assert "Nothing to be done" in finished.succeed("all")
    assert "Nothing to be done" in finished.succeed("train")


def test_a_sampling_setting_remakes_samples_and_what_shows_them(rerun: Project) -> None:
    changed(rerun, "sample", temperature=0.5)
    assert set(rerun.planned("all")) == {"sample", "config", "manifest", "report"}


def test_a_cleaning_threshold_remakes_cleaning_and_what_follows(rerun: Project) -> None:
    changed(rerun, "clean", min_tokens=64)
    planned = rerun.planned("all")
    assert planned["clean_shard"] == 2
    assert {"merge_corpus", "tokenizer", "tokenize_corpus", "index", "train", "sample"} <= set(
        planned
    )
    assert not {"demo", "urls_select", "fetch_shard", "extract_shard", "dedup_remove"} & set(
        planned
    )


@pytest.mark.parametrize(("section", "first"), [("dedup", "dedup_buckets"), ("model", "index")])
def test_a_change_starts_at_its_own_stage(rerun: Project, section: str, first: str) -> None:
    changed(rerun, section, **{"dedup": {"threshold": 0.7}, "model": {"n_positions": 32}}[section])
    order = [
        "urls_select fetch_shard extract_shard dedup_signatures dedup_buckets dedup_pairs",
        "dedup_clusters dedup_remove clean_shard",
        "merge_corpus tokenizer tokenize_corpus index train merge_checkpoint sample",
    ]
    chain = " ".join(order).split()
    planned = rerun.planned("all")
    assert [rule for rule in chain if rule in planned] == chain[chain.index(first) :]


@pytest.mark.parametrize("stage", ["fetch", "documents", "deduped", "clean"])
def test_a_deleted_shard_is_made_again_alone_with_the_same_bytes(
    rerun: Project, stage: str
) -> None:
    ending = "warc.gz" if stage == "fetch" else "jsonl.zst"
    shard = rerun.folder / DATA / stage / f"urls-0001.{ending}"
    content = shard.read_bytes()
    shard.unlink()
    target, rule = {
        "fetch": ("fetch", "fetch_shard"),
        "documents": ("extract", "extract_shard"),
        "deduped": ("dedup", "dedup_remove"),
        "clean": ("clean", "clean_shard"),
    }[stage]
    planned = rerun.planned(target)
    assert planned == {rule: 1, "add_up": 1}
    rerun.succeed(target)
    if stage != "fetch":  # an archive's dates and record ids differ
        assert shard.read_bytes() == content


def test_deleted_intermediates_do_not_call_for_work_when_later_files_stand(rerun: Project) -> None:
    for shard in (rerun.folder / DATA / "deduped").iterdir():
        shard.unlink()
    assert rerun.planned("all") == {}
