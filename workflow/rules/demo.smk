rule demo:
    """Render the documentation strings of this Python into a small web site, with a URL list."""
    output:
        urls="resources/demo/urls.txt",
        planted="resources/demo/planted.json",
        site=directory("resources/demo/site"),
    log:
        "resources/logs/demo.log",
    benchmark:
        "resources/benchmarks/demo.tsv"
    conda:
        ENVIRONMENT
    params:
        version=VERSIONS["demo"],
        folder=subpath(output.urls, parent=True),
    message:
        "demo: rendering documentation strings into a web site"
    shell:
        "web2gpt demo --output {params.folder:q} 2> {log:q}"
