rule clean_shard:
    """Mend broken text and drop short and foreign documents of one shard."""
    input:
        documents=BEFORE["clean"],
    output:
        documents=intermediate("<data>/clean/{shard}.jsonl.zst"),
        rejected="<data>/rejected/clean/{shard}.jsonl.zst",
        stats="<data>/stats/clean/{shard}.json",
    log:
        "<data>/logs/clean/{shard}.log",
    benchmark:
        "<data>/benchmarks/clean/{shard}.tsv"
    conda:
        ENVIRONMENT
    params:
        settings=settings("clean"),
        rejected_text=REJECTED_TEXT,
        work=work("clean/{shard}"),
    message:
        "clean: {wildcards.shard}"
    shell:
        "web2gpt clean --documents {input.documents:q} --output {output.documents:q}"
        " --rejected {output.rejected:q} {params.rejected_text} --stats {output.stats:q}"
        " --work {params.work:q} --settings {params.settings:q} 2> {log:q}"


rule clean:
    """Clean all shards, and add up."""
    input:
        documents=expand("<data>/clean/{shard}.jsonl.zst", shard=DEDUP_SHARDS),
        stats="<data>/stats/clean.json",
