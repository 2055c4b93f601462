"""text-dedup's MinHash, run by the Python of an environment that has it (3.12 or newer).

    python text_dedup_minhash.py DOCUMENTS.jsonl WORK_FOLDER BANDS ROWS THRESHOLD

One process, false positives checked. Prints one JSON object: wall and CPU seconds (imports not
counted), and the ids that are kept.
"""

import json
import os
import sys
import time
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"
sys.argv, arguments = sys.argv[:1], sys.argv[1:]

from datasets import load_from_disk
from text_dedup.config.base import load_config_from_toml
from text_dedup.minhash import main as deduplicate

SETTINGS = """
[input]
input_type = "local_files"
file_type = "json"
[input.read_arguments]
path = "json"
data_files = "{documents}"
split = "train"
cache_dir = "{work}/cache"
[algorithm]
algorithm_name = "minhash"
text_column = "text"
num_proc = 1
num_perm = {permutations}
bands = {bands}
rows = {rows}
ngram_size = 5
threshold = {threshold}
check_false_positive = true
[output]
output_dir = "{work}/kept"
[debug]
"""


def main(documents: str, work: str, bands: int, rows: int, threshold: str) -> None:
    settings = Path(work) / "config.toml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(
        SETTINGS.format(
            documents=documents,
            work=work,
            bands=bands,
            rows=rows,
            threshold=threshold,
            permutations=bands * rows,
        )
    )
    config = load_config_from_toml(settings)
    wall, cpu = time.perf_counter(), sum(os.times()[:4])
    deduplicate(config)
    seconds = {"wall": time.perf_counter() - wall, "cpu": sum(os.times()[:4]) - cpu}
    print(json.dumps({**seconds, "kept": list(load_from_disk(f"{work}/kept")["id"])}))


if __name__ == "__main__":
    folder, work_folder, band_count, row_count, similarity = arguments
    main(folder, work_folder, int(band_count), int(row_count), similarity)
