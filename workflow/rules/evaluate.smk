rule evaluate:
    """Measure the model's loss and perplexity on held-out text."""
    input:
        model="<run>/model/model.safetensors",
        config="<run>/model/config.json",
        tokenizer="<run>/model/tokenizer.json",
        index="<run>/index/manifest.json",
        texts=literally(cfg.evaluate.texts),
        cloze=literally(cfg.evaluate.cloze),
    output:
        evaluation=report(
            "<run>/evaluation/evaluation.json",
            caption="../report/evaluation.rst",
            category="Model",
            labels={"run": cfg.run.name, "what": "evaluation"},
        ),
    log:
        "<run>/logs/evaluate.log",
    benchmark:
        "<run>/benchmarks/evaluate.tsv"
    conda:
        ENVIRONMENT
    params:
        settings=settings("evaluate"),
        folder=subpath(input.model, parent=True),
        work=run_work("evaluate"),
    message:
        "evaluate: loss on held-out text"
    shell:
        "web2gpt evaluate --model {params.folder:q} --index {input.index:q}"
        " --output {output.evaluation:q} --work {params.work:q}"
        " --settings {params.settings:q} 2> {log:q}"
