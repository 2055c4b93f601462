"""From an archive and JSON lines to one corpus: the commands of these stages, one after another.

Run as ``python chain.py FOLDER WORKERS`` by tests that compare what different processes make.
"""

import io
import json
import random
import sys
from pathlib import Path

from typer.testing import CliRunner
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from web2gpt.cli import app

WORDS = "the river of stone and mill in winter valley people wrote to be with that have".split()
QUESTION = "which of the seven brothers carried the heavy stone bridge over the old mountain"
STAGES = ("extract pages", "extract lines", "clean pages", "clean lines", "count",
          "cut pages", "cut lines", "merge")  # fmt: skip
DATED = ("stats",)  # files that hold times


def sentences(draw: random.Random, count: int) -> str:
    made = (" ".join(draw.choices(WORDS, k=12)).capitalize() for _ in range(count))
    return ". ".join(made) + "."


def make_inputs(folder: Path) -> None:
    """pages.warc.gz, lines.jsonl and set.jsonl, the same for each call."""
    draw = random.Random(5)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "pages.warc.gz").open("wb") as file:
        writer = WARCWriter(file, gzip=True)
        for number in range(24):
            text = "".join(f"<p>{sentences(draw, 6)} It isnâ€™t so.</p>" for _ in range(5))
            text += f"<p>{QUESTION}.</p>" if number % 5 == 0 else ""
            text = "<p>Zu kurz.</p>" if number % 7 == 3 else text
            page = f"<html><head><title>{number}</title></head><body><article>{text}</article>"
            headers = StatusAndHeaders(
                "404 Gone" if number == 9 else "200 OK",
                [("Content-Type", "text/html")],
                protocol="HTTP/1.1",
            )
            record = writer.create_warc_record(
                f"http://a.example/{number}", "response", payload=io.BytesIO(page.encode()),
                http_headers=headers,
                warc_headers_dict={"WARC-Record-ID": f"<urn:uuid:{number}>",
                                   "WARC-Date": "2026-03-04T05:06:07Z"},
            )  # fmt: skip
            writer.write_record(record)
    lines = [json.dumps({"text": sentences(draw, 40), "url": f"u{n}"}) for n in range(40)]
    lines[3], lines[8] = "{", json.dumps({"text": 5})
    (folder / "lines.jsonl").write_text("\n".join(lines))
    (folder / "set.jsonl").write_text(json.dumps({"question": QUESTION}))


def arguments(stage: str, folder: Path, workers: int) -> list[str]:
    """The command line of a stage; what it makes begins with the stage's name."""
    name, _, part = stage.partition(" ")
    out = folder / stage.replace(" ", "-")

    def made(stage: str) -> str:
        return str(folder / f"{stage.replace(' ', '-')}.documents.jsonl.zst")

    common = ["--rejected", f"{out}.rejected.jsonl.zst", "--stats", f"{out}.stats.json"]
    work = ["--work", f"{out}.work"]
    against = ["--against", "set.jsonl"]
    match name:
        case "extract":
            pages = ["warc", "--input", "pages.warc.gz", "--extractor", "resiliparse"]
            kind = pages if part == "pages" else ["jsonl", "--input", "lines.jsonl"]
            return ["extract", "--source", part, "--workers", str(workers), "--kind", *kind,
                    "--documents", made(stage), *common, *work]  # fmt: skip
        case "clean":
            filters = ["--gopher-quality.enabled", "--min-tokens", "100", "--mask.emails"]
            return ["clean", "--documents", made(f"extract {part}"), "--output", made(stage),
                    *filters, *common, *work]  # fmt: skip
        case "count":
            shards = ["--documents", made("clean pages"), "--documents", made("clean lines")]
            return ["decontaminate", "count", *shards, *against, "--output",
                    f"{out}.parquet", *work]  # fmt: skip
        case "cut":
            return ["decontaminate", "cut", "--documents", made(f"clean {part}"), "--ngrams",
                    str(folder / "count.parquet"), "--output", made(stage), *against,
                    *common, *work]  # fmt: skip
        case _:
            shards = ["--documents", made("cut pages"), "--documents", made("cut lines")]
            return ["merge", *shards, "--corpus", made(stage), "--frames", f"{out}.frames.parquet",
                    "--frame-bytes", "9000", "--shuffle", "--held-out", "0.2",
                    *common, *work]  # fmt: skip


def run(stage: str, folder: Path, workers: int = 1) -> None:
    """Run a stage; its inputs are the files beside ``folder``, under their bare names."""
    CliRunner().invoke(app, arguments(stage, folder, workers), catch_exceptions=False)


def results(folder: Path) -> dict[str, bytes]:
    """All files that the stages declare, but for those with times in them."""
    files = (path for path in sorted(folder.iterdir()) if path.is_file())
    return {path.name: path.read_bytes() for path in files
            if not any(word in path.name for word in DATED)}  # fmt: skip


if __name__ == "__main__":
    for stage in STAGES:
        run(stage, Path(sys.argv[1]), int(sys.argv[2]))
