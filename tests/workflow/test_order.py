"""``dedup.order: clean_first``: duplicates are sought in cleaned documents."""

import json

from tests.workflow.project import Project
from tests.workflow.test_rerun import DATA, changed

from web2gpt.io.shards import BadLine, read_jsonl


def ids(project: Project, pattern: str) -> list[str]:
    found: list[str] = []
    for path in sorted(project.folder.glob(f"{DATA}/{pattern}")):
        found += [record["id"] for record in read_jsonl(path) if not isinstance(record, BadLine)]
    return sorted(found)


def test_clean_first_swaps_the_two_stages(rerun: Project) -> None:
    changed(rerun, "dedup", order="clean_first")
    rerun.succeed("merge")
    counts = {
        stage: json.loads((rerun.folder / DATA / f"stats/{stage}.json").read_text())
        for stage in ("extract", "clean", "dedup", "merge")
    }
    assert counts["clean"]["in"] == counts["extract"]["out"]
    assert counts["dedup"]["in"] == counts["clean"]["out"]
    assert counts["merge"]["in"] == counts["dedup"]["out"] > 0
    assert ids(rerun, "corpus/corpus.jsonl.zst") == ids(rerun, "deduped/*.jsonl.zst")
    assert set(ids(rerun, "deduped/*.jsonl.zst")) < set(ids(rerun, "documents/*.jsonl.zst"))
