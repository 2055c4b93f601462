rule merge_corpus:
    """Join all documents into one corpus that is read frame by frame."""
    input:
        documents=final_documents,
        readable=[f"<data>/stats/{stage}.json" for stage in SHARDED],
    output:
        corpus="<data>/corpus/corpus.jsonl.zst",
        frames="<data>/corpus/corpus.frames.parquet",
        rejected="<data>/rejected/merge/merge.jsonl.zst",
        stats="<data>/stats/merge/merge.json",
    log:
        "<data>/logs/merge/merge.log",
    benchmark:
        "<data>/benchmarks/merge.tsv"
    conda:
        ENVIRONMENT
    params:
        settings=settings("merge"),
        documents=repeated("--documents", "documents"),
        rejected_text=REJECTED_TEXT,
        work=work("merge"),
    message:
        "merge: one corpus of all shards"
    shell:
        "web2gpt merge {params.documents} --corpus {output.corpus:q} --frames {output.frames:q}"
        " --rejected {output.rejected:q} {params.rejected_text} --stats {output.stats:q}"
        " --work {params.work:q} --settings {params.settings:q} 2> {log:q}"


rule merge:
    """Join all documents into one corpus, and add up."""
    input:
        corpus="<data>/corpus/corpus.jsonl.zst",
        stats="<data>/stats/merge.json",
