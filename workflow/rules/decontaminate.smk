rule decontaminate_count:
    """Count in one shard the n-grams that evaluation sets contain."""
    input:
        documents=BEFORE["decontaminate"],
        against=literally(cfg.decontaminate.against),
    output:
        ngrams=intermediate("<data>/decontaminated/counts/{shard}.parquet"),
    log:
        "<data>/logs/decontaminate/count-{shard}.log",
    benchmark:
        "<data>/benchmarks/decontaminate_count/{shard}.tsv"
    conda:
        ENVIRONMENT
    params:
        settings=settings("decontaminate"),
        work=work("decontaminate_count/{shard}"),
    message:
        "decontaminate: counting in {wildcards.shard}"
    shell:
        "web2gpt decontaminate count --documents {input.documents:q} --output {output.ngrams:q}"
        " --work {params.work:q} --settings {params.settings:q} 2> {log:q}"


rule decontaminate_add:
    """Add up the counts of all shards: how often the whole corpus holds each n-gram."""
    input:
        counts=expand("<data>/decontaminated/counts/{shard}.parquet", shard=DEDUP_SHARDS),
    output:
        ngrams="<data>/decontaminated/ngrams.parquet",
    log:
        "<data>/logs/decontaminate/add.log",
    benchmark:
        "<data>/benchmarks/decontaminate_add.tsv"
    conda:
        ENVIRONMENT
    params:
        counts=repeated("--counts", "counts"),
        work=work("decontaminate_add"),
    message:
        "decontaminate: n-grams of the whole corpus"
    shell:
        "web2gpt decontaminate add {params.counts} --output {output.ngrams:q}"
        " --work {params.work:q} 2> {log:q}"


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
