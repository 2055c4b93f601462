rule sample:
    """Draw text from the trained model."""
    input:
        model="<run>/model/model.safetensors",
        config="<run>/model/config.json",
        tokenizer="<run>/model/tokenizer.json",
        prompts=literally([cfg.sample.prompts_file]),
    output:
        samples="<run>/samples/samples.jsonl",
        text=report(
            "<run>/samples/samples.txt",
            caption="../report/samples.rst",
            category="Model",
            labels={"run": cfg.run.name, "what": "samples"},
        ),
    log:
        "<run>/logs/sample.log",
    benchmark:
        "<run>/benchmarks/sample.tsv"
    conda:
        ENVIRONMENT
    params:
        settings=settings("sample", seed=cfg.run.seed),
        folder=subpath(input.model, parent=True),
        work=run_work("sample"),
    message:
        "sample: text from the model"
    shell:
        "web2gpt sample --model {params.folder:q} --output {output.samples:q}"
        " --work {params.work:q} --settings {params.settings:q} 2> {log:q}"
