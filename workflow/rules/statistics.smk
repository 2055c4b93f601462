rule add_up:
    """Add up a stage's statistics over its shards; stop if too much was unreadable, or nothing is left."""
    input:
        parts=statistics_of_shards,
    output:
        stats=report(
            "<data>/stats/{stage}.json",
            caption="../report/statistics.rst",
            category="Corpus",
            labels={"data": cfg.data.name, "stage": "{stage}"},
        ),
    log:
        "<data>/logs/{stage}.log",
    conda:
        ENVIRONMENT
    params:
        parts=repeated("--part", "parts"),
        limit=cfg.limits.errors,
        not_empty=not_empty,
    message:
        "{wildcards.stage}: adding up"
    shell:
        "web2gpt statistics {params.parts} --limit {params.limit} {params.not_empty}"
        " --output {output.stats:q} 2> {log:q}"
