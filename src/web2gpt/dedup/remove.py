"""Step 5, a job a shard: leave out the documents that clusters.parquet removes.

The shard is read twice: for its ids, so that only its own removals are in memory, and to be
written. Rejected records carry the similarity as ``figure`` and the kept document's id as ``kept``.
"""

from pathlib import Path

from web2gpt.config.versions import VERSIONS
from web2gpt.dedup.removals import removals_of
from web2gpt.dedup.sound import sound_documents
from web2gpt.io.documents import fault_of
from web2gpt.io.stage import ShardFiles, ShardJob
from web2gpt.io.work import file_states


def remove_duplicates(files: ShardFiles, clusters: Path, *, rejected_text: bool) -> None:
    """Write the documents of one shard that are kept."""
    job = {"version": VERSIONS["dedup"], "clusters": file_states([clusters])}
    with ShardJob("dedup", "documents", files, job, rejected_text=rejected_text) as shard:
        if not shard.needed:
            return
        wanted = (document["id"] for path in files.inputs for document in sound_documents(path))
        removals = removals_of(clusters, wanted)
        for document in shard.documents():
            fault = fault_of(document)
            removal = None if fault else removals.get(document["id"])
            if fault:
                shard.error(document, fault)
            elif removal:
                shard.drop(document, removal.reason, removal.similarity, kept=removal.kept)
            else:
                shard.keep(document)
