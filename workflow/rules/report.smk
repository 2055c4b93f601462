rule config:
    """Write down the resolved configuration of this run, every default included."""
    output:
        config=report(
            "<run>/config.yaml",
            caption="../report/config.rst",
            category="Provenance",
            labels={"run": cfg.run.name, "what": "configuration"},
        ),
    log:
        "<run>/logs/config.log",
    conda:
        ENVIRONMENT
    params:
        values=settings(*Config.model_fields, stage="report"),
    message:
        "config: the resolved configuration"
    shell:
        "web2gpt config resolve --output {output.config:q} --settings {params.values:q} 2> {log:q}"


rule manifest:
    """Write down versions, and the hashes of inputs and artifacts."""
    input:
        config="<run>/config.yaml",
        sources=literally(file for source in cfg.input for file in source_files(source)),
        urls=["<data>/urls/clean.txt"] if URL_SHARDS else [],
        fetch=expand("<data>/fetch/{shard}.warc.gz", shard=URL_SHARDS),
        clusters=["<data>/dedup/clusters.parquet"] if DEDUP_SHARDS else [],
        corpus=[CORPUS, FRAMES] if SHARDS else [],
        tokens=[f"{TOKENS}.bin", f"{TOKENS}.idx"] if SHARDS else [],
        tokenizer="<data>/tokenizer/tokenizer.json",
        index="<run>/index/manifest.json",
        train="<run>/train/done.json",
        model="<run>/model/model.safetensors",
        samples="<run>/samples/samples.jsonl",
        evaluation="<run>/evaluation/evaluation.json",
    output:
        manifest=report(
            "<run>/manifest.json",
            caption="../report/manifest.rst",
            category="Provenance",
            labels={"run": cfg.run.name, "what": "versions and hashes"},
        ),
    log:
        "<run>/logs/manifest.log",
    conda:
        ENVIRONMENT
    params:
        files=artifacts,
    message:
        "manifest: versions and hashes"
    shell:
        "web2gpt manifest --output {output.manifest:q} --sources {input.config:q}"
        " {params.files} 2> {log:q}"


rule report:
    """Show the run on one page: the funnel, the training, the samples."""
    input:
        config="<run>/config.yaml",
        manifest="<run>/manifest.json",
        tokenizer="<data>/tokenizer/tokenizer.json",
        stats=[f"<data>/stats/{stage}.json" for stage in COUNTED],
        metrics="<run>/train/metrics.jsonl",
        samples="<run>/samples/samples.jsonl",
        evaluation="<run>/evaluation/evaluation.json",
    output:
        report=report(
            "<run>/report/report.html",
            caption="../report/report.rst",
            category="Run",
            labels={"run": cfg.run.name, "what": "one page"},
        ),
    log:
        "<run>/logs/report.log",
    benchmark:
        "<run>/benchmarks/report.tsv"
    conda:
        ENVIRONMENT
    params:
        version=VERSIONS["report"],
        data=subpath(input.tokenizer, ancestor=2),
        run=subpath(input.config, parent=True),
    message:
        "report: one page on the run"
    shell:
        "web2gpt report --data {params.data:q} --run {params.run:q}"
        " --output {output.report:q} 2> {log:q}"
