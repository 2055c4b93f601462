rule decontaminate_count:
    """Count, over the whole corpus, the n-grams that evaluation sets contain."""
    input:
        documents=expand(BEFORE["decontaminate"], shard=DEDUP_SHARDS),
        against=cfg.decontaminate.against,
    output:
        ngrams="<data>/decontaminated/ngrams.parquet",
    log:
        "<data>/logs/decontaminate/count.log",
    benchmark:
        "<data>/benchmarks/decontaminate_count.tsv"
    conda:
        ENVIRONMENT
    params:
        settings=settings("decontaminate"),
        documents=repeated("--documents", "documents"),
        work=work("decontaminate_count"),
    message:
        "decontaminate: counting n-grams of the evaluation sets"
    shell:
        "web2gpt decontaminate count {params.documents} --output {output.ngrams:q}"
        " --work {params.work:q} --settings {params.settings:q} 2> {log:q}"


rule decontaminate_shard:
    """Cut what evaluation sets contain out of one shard."""
    input:
        documents=BEFORE["decontaminate"],
        ngrams="<data>/decontaminated/ngrams.parquet",
    output:
        documents=intermediate("<data>/decontaminated/{shard}.jsonl.zst"),
        rejected="<data>/rejected/decontaminate/{shard}.jsonl.zst",
        stats="<data>/stats/decontaminate/{shard}.json",
    log:
        "<data>/logs/decontaminate/{shard}.log",
    benchmark:
        "<data>/benchmarks/decontaminate/{shard}.tsv"
    conda:
        ENVIRONMENT
    params:
        settings=settings("decontaminate"),
        rejected_text=REJECTED_TEXT,
        work=work("decontaminate/{shard}"),
    message:
        "decontaminate: {wildcards.shard}"
    shell:
        "web2gpt decontaminate cut --documents {input.documents:q} --ngrams {input.ngrams:q}"
        " --output {output.documents:q} --rejected {output.rejected:q} {params.rejected_text}"
        " --stats {output.stats:q} --work {params.work:q} --settings {params.settings:q} 2> {log:q}"


rule decontaminate_report:
    """Tell what of each evaluation set the corpus held."""
    input:
        ngrams="<data>/decontaminated/ngrams.parquet",
    output:
        report="<data>/decontaminated/report.json",
    log:
        "<data>/logs/decontaminate/report.log",
    benchmark:
        "<data>/benchmarks/decontaminate_report.tsv"
    conda:
        ENVIRONMENT
    params:
        settings=settings("decontaminate"),
    message:
        "decontaminate: what was hit"
    shell:
        "web2gpt decontaminate report --ngrams {input.ngrams:q} --output {output.report:q}"
        " --settings {params.settings:q} 2> {log:q}"


rule decontaminate:
    """Cut what evaluation sets contain out of all shards, and add up."""
    input:
        documents=expand("<data>/decontaminated/{shard}.jsonl.zst", shard=DEDUP_SHARDS),
        report="<data>/decontaminated/report.json",
        stats="<data>/stats/decontaminate.json",
