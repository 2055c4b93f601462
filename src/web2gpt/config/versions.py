"""The version of each stage's results: raised when the same input and settings give other bytes.

Snakemake cannot see inside the package; it sees these numbers, and makes again what they concern.
"""

VERSIONS = {
    "demo": 2,
    "urls": 3,
    "fetch": 2,
    "extract": 3,
    "dedup": 2,
    "clean": 3,
    "decontaminate": 2,
    "merge": 2,
    "tokenizer": 1,
    "tokenize": 2,
    "index": 2,
    "train": 7,
    "merge_checkpoint": 1,
    "sample": 3,
    "evaluate": 2,
    "report": 3,
}
