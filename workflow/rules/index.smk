rule index:
    """Decide which documents are trained on, and in which order."""
    input:
        tokens=literally(PAIRS),
        documents=["<data>/tokens/documents.parquet"] if SHARDS else [],
        readable=["<data>/stats/tokenize.json"] if SHARDS else [],
        tokenizer="<data>/tokenizer/tokenizer.json",
    output:
        arrays=expand(
            "<run>/index/{part}.{array}.npy",
            part=(
                "train",
                "valid",
                "test",
                *(f"valid-{name}" for name in cfg.index.validation),
            ),
            array=("document", "sample", "shuffle"),
        ),
        manifest="<run>/index/manifest.json",
    log:
        "<run>/logs/index.log",
    benchmark:
        "<run>/benchmarks/index.tsv"
    conda:
        ENVIRONMENT
    params:
        settings=settings(
            "index",
            seed=cfg.run.seed,
            sequence_length=cfg.model.n_positions,
            train_samples=Length.of(cfg.train, cfg.model.n_positions).samples,
        ),
        tokens=named("--tokens", PREFIXES),
        weights=named(
            "--weight",
            [(source.name, source.weight) for source in cfg.input if source.weight],
        ),
        documents=repeated("--documents", "documents"),
        folder=subpath(output.manifest, parent=True),
        work=run_work("index"),
    message:
        "index: order of the training samples"
    shell:
        "web2gpt index {params.tokens} {params.documents} {params.weights}"
        " --tokenizer {input.tokenizer:q} --output {params.folder:q} --work {params.work:q}"
        " --settings {params.settings:q} 2> {log:q}"
