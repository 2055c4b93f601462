# Near-duplicates, in five steps. A threshold, say, is no setting of signatures: they stay.
SIGNATURE_SETTINGS = ("shingle", "ngram", "permutations")
FIELDS = ("date_field", "priority_field")
BAND_SETTINGS = ("threshold", "false_positive_weight", "false_negative_weight")
BUCKET_PARTS = [f"{part:02d}" for part in range(cfg.dedup.jobs)]


rule dedup_signatures:
    """Compute the MinHash signatures of one shard's documents."""
    input:
        documents=BEFORE["dedup"],
    output:
        signatures="<data>/dedup/signatures/{shard}.parquet",
    log:
        "<data>/logs/dedup/signatures/{shard}.log",
    benchmark:
        "<data>/benchmarks/dedup_signatures/{shard}.tsv"
    conda:
        ENVIRONMENT
    params:
        settings=settings("dedup", of=(*SIGNATURE_SETTINGS, *FIELDS)),
        work=work("dedup_signatures/{shard}"),
    message:
        "dedup: signatures of {wildcards.shard}"
    shell:
        "web2gpt dedup signatures --documents {input.documents:q} --output {output.signatures:q}"
        " --work {params.work:q} --settings {params.settings:q} 2> {log:q}"


rule dedup_buckets:
    """Find the documents that share a bucket, in some of the bands."""
    input:
        signatures=expand("<data>/dedup/signatures/{shard}.parquet", shard=DEDUP_SHARDS),
        against=earlier_signatures,
    output:
        buckets="<data>/dedup/buckets/{part}.parquet",
    log:
        "<data>/logs/dedup/buckets/{part}.log",
    benchmark:
        "<data>/benchmarks/dedup_buckets/{part}.tsv"
    conda:
        ENVIRONMENT
    params:
        settings=settings("dedup", of=(*SIGNATURE_SETTINGS, *BAND_SETTINGS, "against", "jobs")),
        signatures=repeated("--signatures", "signatures"),
        part=lambda wildcards: int(wildcards.part),
        work=work("dedup_buckets/{part}"),
    message:
        "dedup: buckets of part {wildcards.part}"
    shell:
        "web2gpt dedup buckets {params.signatures} --part {params.part}"
        " --output {output.buckets:q} --work {params.work:q}"
        " --settings {params.settings:q} 2> {log:q}"


rule dedup_pairs:
    """Verify the similarity of documents that share a bucket."""
    input:
        signatures=expand("<data>/dedup/signatures/{shard}.parquet", shard=DEDUP_SHARDS),
        documents=expand(BEFORE["dedup"], shard=DEDUP_SHARDS),
        buckets=expand("<data>/dedup/buckets/{part}.parquet", part=BUCKET_PARTS),
        against=earlier_runs,
        readable=f"<data>/stats/{READ_BEFORE['dedup']}.json",
    output:
        pairs="<data>/dedup/pairs.parquet",
    log:
        "<data>/logs/dedup/pairs.log",
    benchmark:
        "<data>/benchmarks/dedup_pairs.tsv"
    conda:
        ENVIRONMENT
    params:
        settings=settings("dedup"),
        signatures=repeated("--signatures", "signatures"),
        documents=repeated("--documents", "documents"),
        buckets=repeated("--buckets", "buckets"),
        work=work("dedup_pairs"),
    message:
        "dedup: verified pairs of near-duplicates"
    shell:
        "web2gpt dedup pairs {params.signatures} {params.documents} {params.buckets}"
        " --output {output.pairs:q} --work {params.work:q}"
        " --settings {params.settings:q} 2> {log:q}"


rule dedup_clusters:
    """Choose which of the near-duplicates are kept."""
    input:
        signatures=expand("<data>/dedup/signatures/{shard}.parquet", shard=DEDUP_SHARDS),
        documents=expand(BEFORE["dedup"], shard=DEDUP_SHARDS),
        pairs="<data>/dedup/pairs.parquet",
        against=earlier_runs,
    output:
        clusters="<data>/dedup/clusters.parquet",
    log:
        "<data>/logs/dedup/clusters.log",
    benchmark:
        "<data>/benchmarks/dedup_clusters.tsv"
    conda:
        ENVIRONMENT
    params:
        settings=settings("dedup"),
        signatures=repeated("--signatures", "signatures"),
        documents=repeated("--documents", "documents"),
        work=work("dedup_clusters"),
    message:
        "dedup: clusters of near-duplicates"
    shell:
        "web2gpt dedup clusters {params.signatures} {params.documents} --pairs {input.pairs:q}"
        " --output {output.clusters:q} --work {params.work:q}"
        " --settings {params.settings:q} 2> {log:q}"


rule dedup_remove:
    """Drop the near-duplicates from one shard."""
    input:
        documents=BEFORE["dedup"],
        clusters="<data>/dedup/clusters.parquet",
    output:
        documents=intermediate("<data>/deduped/{shard}.jsonl.zst"),
        rejected="<data>/rejected/dedup/{shard}.jsonl.zst",
        stats="<data>/stats/dedup/{shard}.json",
    log:
        "<data>/logs/dedup/{shard}.log",
    benchmark:
        "<data>/benchmarks/dedup_remove/{shard}.tsv"
    conda:
        ENVIRONMENT
    params:
        version=VERSIONS["dedup"],
        rejected_text=REJECTED_TEXT,
        work=work("dedup_remove/{shard}"),
    message:
        "dedup: {wildcards.shard}"
    shell:
        "web2gpt dedup remove --documents {input.documents:q} --clusters {input.clusters:q}"
        " --output {output.documents:q} --rejected {output.rejected:q} {params.rejected_text}"
        " --stats {output.stats:q} --work {params.work:q} 2> {log:q}"


rule dedup:
    """Drop near-duplicates from all shards, and add up."""
    input:
        documents=expand("<data>/deduped/{shard}.jsonl.zst", shard=DEDUP_SHARDS),
        stats="<data>/stats/dedup.json",
