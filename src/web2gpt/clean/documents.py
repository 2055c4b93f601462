"""Clean a shard's documents: mend the text, then let each filter judge it."""

from web2gpt.clean.filters import filters
from web2gpt.clean.marks import longest_run
from web2gpt.clean.mask import masker
from web2gpt.clean.mend import Mend, collapse_whitespace, text_fixer
from web2gpt.config.clean import Clean
from web2gpt.io.shards import Document
from web2gpt.io.stage import ShardJob
from web2gpt.web.text import writable


def clean_documents(job: ShardJob, settings: Clean) -> None:
    """Clean the job's documents. Figures: texts fixed by ftfy, characters lost to each filter,
    how length was judged, addresses masked."""
    figures = job.statistics.figures
    mend, judges, mask = _mender(settings), filters(settings), masker(settings.mask)
    length_rule = "judged_by_tokenizer" if settings.token_counter else "judged_by_bytes"
    for document in job.documents():
        if not isinstance(document.get("text"), str):
            job.error(document, "no_text")
            continue
        if marks := longest_run(document["text"]):
            figures["combining_marks_characters"] += len(document["text"])
            job.drop(document, "combining_marks", marks)
            continue
        text = mend(document["text"])
        figures["fixed"] += text != document["text"]
        document["text"] = collapse_whitespace(text) if settings.whitespace else text
        for name, judge in judges.items():
            if name == "short":
                figures[length_rule] += 1
            if (figure := judge(document)) is not None:
                figures[f"{name}_characters"] += len(document["text"])
                job.drop(document, name, figure)
                break
        else:
            if mask:
                document["text"], count = mask(document["text"])
                figures["masked"] += count
            _keep(job, document)


def _mender(settings: Clean) -> Mend:
    """Mends a text; with ftfy or not, nothing comes out that cannot be written."""
    if not settings.fix_text:
        return writable
    fix = text_fixer(settings.ftfy)
    return lambda text: writable(fix(text))


def _keep(job: ShardJob, document: Document) -> None:
    job.statistics.figures["characters"] += len(document["text"])
    job.keep(document)
