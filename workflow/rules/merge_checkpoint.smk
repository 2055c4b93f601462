rule merge_checkpoint:
    """Join the checkpoint's shards into one Hugging Face folder."""
    input:
        done="<run>/train/done.json",
        tokenizer="<data>/tokenizer/tokenizer.json",
    output:
        model="<run>/model/model.safetensors",
        config="<run>/model/config.json",
        tokenizer="<run>/model/tokenizer.json",
        tokenizer_config="<run>/model/tokenizer_config.json",
        generation="<run>/model/generation_config.json",
    log:
        "<run>/logs/merge_checkpoint.log",
    benchmark:
        "<run>/benchmarks/merge_checkpoint.tsv"
    conda:
        ENVIRONMENT
    params:
        settings=settings("merge_checkpoint"),
        folder=subpath(output.model, parent=True),
        work=run_work("merge_checkpoint"),
    message:
        "merge_checkpoint: one model of all shards"
    shell:
        "web2gpt merge-checkpoint --done {input.done:q} --tokenizer {input.tokenizer:q}"
        " --output {params.folder:q} --work {params.work:q}"
        " --settings {params.settings:q} 2> {log:q}"
