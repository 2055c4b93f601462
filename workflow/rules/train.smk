rule train:
    """Train GPT-2 under the configured layout; carries on from its last checkpoint."""
    input:
        index="<run>/index/manifest.json",
        arrays=expand(
            "<run>/index/{part}.{array}.npy",
            part=(
                "train",
                "valid",
                *(f"valid-{name}" for name in cfg.index.validation),
            ),
            array=("document", "sample", "shuffle"),
        ),
        tokenizer="<data>/tokenizer/tokenizer.json",
        documents=["<data>/tokens/documents.parquet"] if SHARDS else [],
    output:
        done="<run>/train/done.json",
        metrics="<run>/train/metrics.jsonl",
        tensorboard=directory("<run>/train/tensorboard"),
    log:
        "<run>/logs/train.log",
    benchmark:
        "<run>/benchmarks/train.tsv"
    # Stopped by SIGTERM, SIGUSR1 or train.exit_after it ends with exit code 75, everything saved:
    # the next attempt carries on. One after an error that stays ends at once with that error.
    retries: 3
    conda:
        ENVIRONMENT
    threads: world_size(cfg.parallel) * cfg.train.threads
    resources:
        **across_nodes(cfg),
        attempt=lambda wildcards, attempt: attempt,
    params:
        launch=launch(cfg),
        documents=repeated("--documents", "documents"),
        settings=settings("run", "model", "parallel", "optimizer", "schedule", "train"),
        folder=subpath(output.done, parent=True),
        checkpoints=f"{RUN}/checkpoints",
        work=run_work("train"),
    message:
        "train: GPT-2 on {threads} threads or more"
    shell:
        "{params.launch} web2gpt train --index {input.index:q} --tokenizer {input.tokenizer:q}"
        " {params.documents}"
        " --output {params.folder:q} --checkpoints {params.checkpoints:q}"
        " --work {params.work:q} --attempt {resources.attempt}"
        " --settings {params.settings:q} 2> {log:q}"
