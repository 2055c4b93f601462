rule tokenizer:
    """Train the byte-level BPE tokenizer on the corpus, or take the one that is given."""
    input:
        corpus=[CORPUS] if SHARDS else [],
        frames=[FRAMES] if SHARDS else [],
        readable=["<data>/stats/merge.json"] if SHARDS else [],
        given=literally([cfg.tokenizer.path]),
    output:
        tokenizer="<data>/tokenizer/tokenizer.json",
        manifest="<data>/tokenizer/manifest.json",
    log:
        "<data>/logs/tokenizer.log",
    benchmark:
        "<data>/benchmarks/tokenizer.tsv"
    conda:
        ENVIRONMENT
    params:
        settings=settings("tokenizer"),
        corpus=repeated("--corpus", "corpus"),
        frames=repeated("--frames", "frames"),
        work=work("tokenizer"),
    message:
        "tokenizer: byte-level BPE"
    shell:
        "web2gpt tokenizer {params.corpus} {params.frames} --output {output.tokenizer:q}"
        " --manifest {output.manifest:q} --work {params.work:q}"
        " --settings {params.settings:q} 2> {log:q}"


rule tokenize_corpus:
    """Turn the corpus into Megatron's indexed dataset of token ids."""
    input:
        corpus="<data>/corpus/corpus.jsonl.zst",
        frames="<data>/corpus/corpus.frames.parquet",
        tokenizer="<data>/tokenizer/tokenizer.json",
    output:
        bin="<data>/tokens/corpus_text_document.bin",
        idx="<data>/tokens/corpus_text_document.idx",
        manifest="<data>/tokens/corpus_text_document.manifest.json",
        documents="<data>/tokens/documents.parquet",
        rejected="<data>/rejected/tokenize/tokenize.jsonl.zst",
        stats="<data>/stats/tokenize/tokenize.json",
    log:
        "<data>/logs/tokenize/tokenize.log",
    benchmark:
        "<data>/benchmarks/tokenize.tsv"
    conda:
        ENVIRONMENT
    params:
        settings=settings("tokenize"),
        rejected_text=REJECTED_TEXT,
        work=work("tokenize"),
    message:
        "tokenize: corpus into .bin and .idx"
    shell:
        "web2gpt tokenize --corpus {input.corpus:q} --frames {input.frames:q}"
        " --tokenizer {input.tokenizer:q} --bin {output.bin:q} --idx {output.idx:q}"
        " --documents {output.documents:q}"
        " --rejected {output.rejected:q} {params.rejected_text}"
        " --stats {output.stats:q} --work {params.work:q} --workers {threads}"
        " --settings {params.settings:q} 2> {log:q}"


rule tokenize:
    """Turn the corpus into Megatron's indexed dataset, and add up."""
    input:
        bin="<data>/tokens/corpus_text_document.bin",
        idx="<data>/tokens/corpus_text_document.idx",
        documents="<data>/tokens/documents.parquet",
        stats="<data>/stats/tokenize.json",
