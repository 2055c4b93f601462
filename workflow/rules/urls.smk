rule urls_select:
    """Keep the URLs worth fetching: well-formed, not blacklisted, once each; in shards."""
    input:
        lists=url_lists,
    output:
        urls="<data>/urls/clean.txt",
        shards=expand("<data>/urls/{shard}.tsv", shard=URL_SHARDS),
        rejected="<data>/rejected/urls/urls.jsonl.zst",
        stats="<data>/stats/urls/urls.json",
    log:
        "<data>/logs/urls/urls.log",
    benchmark:
        "<data>/benchmarks/urls.tsv"
    conda:
        ENVIRONMENT
    params:
        settings=settings("urls"),
        sources=named(
            "--source",
            [(source.name, path) for source in URL_SOURCES for path in source.paths],
        ),
        shards=cfg.data.shards,
        folder=subpath(output.urls, parent=True),
        work=work("urls"),
    message:
        "urls: choosing the URLs worth fetching"
    shell:
        "web2gpt urls {params.sources} --shards {params.shards} --output {params.folder:q}"
        " --rejected {output.rejected:q} --stats {output.stats:q} --work {params.work:q}"
        " --workers {threads} --settings {params.settings:q} 2> {log:q}"


rule urls:
    """Choose the URLs worth fetching, and add up."""
    input:
        urls="<data>/urls/clean.txt",
        stats="<data>/stats/urls.json",
