rule fetch_shard:
    """Fetch one shard's URLs politely into a WARC file, with an outcome for each URL."""
    input:
        urls="<data>/urls/{shard}.tsv",
        readable="<data>/stats/urls.json",
        site=literally([cfg.fetch.serve]),
    output:
        warc="<data>/fetch/{shard}.warc.gz",
        outcomes="<data>/fetch/{shard}.outcomes.jsonl.zst",
        rejected="<data>/rejected/fetch/{shard}.jsonl.zst",
        stats="<data>/stats/fetch/{shard}.json",
    log:
        "<data>/logs/fetch/{shard}.log",
    benchmark:
        "<data>/benchmarks/fetch/{shard}.tsv"
    conda:
        ENVIRONMENT
    resources:
        pace=pace,
    params:
        settings=settings("fetch", of=[name for name in Fetch.model_fields if name not in PACE]),
        work=work("fetch/{shard}"),
    message:
        "fetch: {wildcards.shard}"
    shell:
        "web2gpt fetch --urls {input.urls:q} --warc {output.warc:q}"
        " --outcomes {output.outcomes:q} --rejected {output.rejected:q}"
        " --stats {output.stats:q} --work {params.work:q}"
        " --settings {params.settings:q} {resources.pace} 2> {log:q}"


rule fetch:
    """Fetch all URLs and add up what became of them."""
    input:
        warc=expand("<data>/fetch/{shard}.warc.gz", shard=URL_SHARDS),
        stats="<data>/stats/fetch.json",
