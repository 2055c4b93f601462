"""datatrove's MinHash pipeline, run by the peer environment's Python.

    python datatrove_minhash.py DOCUMENTS_FOLDER WORK_FOLDER BUCKETS HASHES_PER_BUCKET

All four stages in this process, one task at a time. Prints one JSON object: wall and CPU seconds
of the stages (imports not counted), and the ids that are kept.
"""

import json
import os
import sys
import time
from pathlib import Path

from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.dedup import (
    MinhashDedupBuckets,
    MinhashDedupCluster,
    MinhashDedupFilter,
    MinhashDedupSignature,
)
from datatrove.pipeline.dedup.minhash import MinhashConfig
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers.jsonl import JsonlWriter


def main(documents: str, work: str, buckets: int, hashes: int) -> None:
    config = MinhashConfig(n_grams=5, num_buckets=buckets, hashes_per_bucket=hashes)
    reader = JsonlReader(documents, compression="zstd", glob_pattern="*.jsonl.zst")
    tasks = len(list(Path(documents).glob("*.jsonl.zst")))
    stages = [
        ([reader, MinhashDedupSignature(f"{work}/signatures", config)], tasks),
        ([MinhashDedupBuckets(f"{work}/signatures", f"{work}/buckets", config=config)], buckets),
        ([MinhashDedupCluster(f"{work}/buckets", f"{work}/remove", config=config)], 1),
        ([reader, MinhashDedupFilter(f"{work}/remove"), JsonlWriter(f"{work}/kept")], tasks),
    ]
    wall, cpu = time.perf_counter(), sum(os.times()[:4])
    for number, (pipeline, count) in enumerate(stages):
        logs = f"{work}/logs/{number}"
        LocalPipelineExecutor(pipeline, tasks=count, workers=1, logging_dir=logs).run()
    seconds = {"wall": time.perf_counter() - wall, "cpu": sum(os.times()[:4]) - cpu}
    kept = [
        document.id
        for document in JsonlReader(f"{work}/kept", glob_pattern="*.jsonl.gz", compression="gzip")()
    ]
    print(json.dumps({**seconds, "kept": kept}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
