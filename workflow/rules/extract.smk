rule extract_shard:
    """Turn one shard's archive, or JSON lines, into documents."""
    input:
        files=extract_inputs,
    output:
        documents=intermediate("<data>/documents/{shard}.jsonl.zst"),
        rejected="<data>/rejected/extract/{shard}.jsonl.zst",
        stats="<data>/stats/extract/{shard}.json",
    log:
        "<data>/logs/extract/{shard}.log",
    benchmark:
        "<data>/benchmarks/extract/{shard}.tsv"
    conda:
        ENVIRONMENT
    params:
        settings=extract_settings,
        source=extract_source_flags,
        inputs=repeated("--input", "files"),
        rejected_text=REJECTED_TEXT,
        work=work("extract/{shard}"),
    message:
        "extract: {wildcards.shard}"
    shell:
        "web2gpt extract {params.source} {params.inputs} --documents {output.documents:q}"
        " --rejected {output.rejected:q} {params.rejected_text} --stats {output.stats:q}"
        " --work {params.work:q} --workers {threads} --settings {params.settings:q} 2> {log:q}"


rule extract:
    """Turn all archives and JSON lines into documents, and add up."""
    input:
        documents=expand("<data>/documents/{shard}.jsonl.zst", shard=SHARDS),
        stats="<data>/stats/extract.json",
