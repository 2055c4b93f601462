rule dedup_signatures:
    """Compute the MinHash signatures of one shard's documents."""
    input:
        documents="<data>/documents/{shard}.jsonl.zst",
    output:
        signatures="<data>/dedup/signatures/{shard}.parquet",
    log:
        "<data>/logs/dedup/signatures/{shard}.log",
    benchmark:
        "<data>/benchmarks/dedup_signatures/{shard}.tsv"
    conda:
        ENVIRONMENT
    params:
        settings=settings("dedup"),
        work=work("dedup_signatures/{shard}"),
    message:
        "dedup: signatures of {wildcards.shard}"
    shell:
        "web2gpt dedup signatures --documents {input.documents:q} --output {output.signatures:q}"
        " --work {params.work:q} --settings {params.settings:q} 2> {log:q}"


rule dedup_clusters:
    """Find and verify the near-duplicates among all documents, and choose which are kept."""
    input:
        signatures=expand("<data>/dedup/signatures/{shard}.parquet", shard=DEDUP_SHARDS),
        documents=expand("<data>/documents/{shard}.jsonl.zst", shard=DEDUP_SHARDS),
        readable="<data>/stats/extract.json",
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
        "web2gpt dedup clusters {params.signatures} {params.documents}"
        " --output {output.clusters:q} --work {params.work:q}"
        " --settings {params.settings:q} 2> {log:q}"


rule dedup_remove:
    """Drop the near-duplicates from one shard."""
    input:
        documents="<data>/documents/{shard}.jsonl.zst",
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
