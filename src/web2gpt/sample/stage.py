"""The stage sample: texts drawn from a model into samples.jsonl, and samples.txt for the eye."""

import sys
from dataclasses import asdict, dataclass
from io import TextIOWrapper
from pathlib import Path

import orjson
import torch

from web2gpt.checkpoint.open import ModelFiles, Opened
from web2gpt.config.outputs import SampleRun
from web2gpt.config.versions import VERSIONS
from web2gpt.io.atomic import write_bytes, write_text
from web2gpt.io.progress import ProgressLine
from web2gpt.io.work import WorkFolder, file_states
from web2gpt.model.device import prepare_device
from web2gpt.sample.drawable import Drawable
from web2gpt.sample.generate import Sampled, Sampler
from web2gpt.sample.live import converse, stream
from web2gpt.sample.packed import pack
from web2gpt.sample.prompts import read_prompts

PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16}


@dataclass(frozen=True)
class SampleFiles:
    """Where the stage reads and writes. Beside ``output`` (samples.jsonl) appears ``page``."""

    model: ModelFiles
    output: Path
    work: Path

    @property
    def page(self) -> Path:
        return self.output.with_suffix(".txt")


def sample_model(files: SampleFiles, settings: SampleRun, *, live: bool = False) -> None:
    """Write samples.jsonl, one text a line in the order of the prompts, and print the texts;
    ``live``: one after the other, as they are drawn.

    Raises ``InputError`` if the folder holds no model that is computed here.
    """
    inputs = files.model.inputs()
    inputs += [Path(settings.prompts_file)] if settings.prompts_file else []
    job = {
        "stage": "sample",
        "version": VERSIONS["sample"],
        "settings": settings.model_dump(mode="json"),
        "inputs": file_states(inputs),
    }
    with WorkFolder(files.work, job) as work:
        if work.is_published([files.output, files.page]):
            print(f"sample: {files.output} is there already", flush=True)
            return
        sampler = open_sampler(files.model, settings)
        prompts = read_prompts(settings)
        samples = stream(sampler, prompts) if live else draw_samples(sampler, prompts)
        page = "".join(f"{readable(sample)}\n" for sample in samples)
        drafts = {work.path / path.name: path for path in (files.output, files.page)}
        lines, text = drafts
        write_bytes(lines, b"".join(_line(sample) for sample in samples))
        write_text(text, page)
        work.publish(drafts)
    if not live:
        print(page, end="")
    ended = sum(sample.finished for sample in samples)
    tokens = sum(sample.length for sample in samples)
    print(f"sample: {len(samples)} texts, {tokens:,} tokens, {ended} came to an end", flush=True)


def interactive(model: ModelFiles, settings: SampleRun) -> None:
    """Prompts from standard input, each answered with a text; nothing is written. Bytes that are
    not UTF-8 are replaced: a slip of the keyboard ends no dialogue."""
    if isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    converse(open_sampler(model, settings), sys.stdin)


def open_sampler(model: ModelFiles, settings: SampleRun) -> Sampler:
    """A sampler on the device that the settings ask for."""
    return sampler_of(model.open(prepare_device(settings.device, settings.threads)), settings)


def sampler_of(opened: Opened, settings: SampleRun) -> Sampler:
    """A sampler of an opened model, in the precision asked for, its matrices laid out for it."""
    drawable = Drawable.of(opened.tokenizer, opened.vocab_size, opened.end_of_text)
    gpt2 = opened.gpt2.to(PRECISIONS[settings.precision])
    return Sampler(pack(gpt2), opened.model, drawable, settings)


def draw_samples(sampler: Sampler, prompts: list[str]) -> list[Sampled]:
    """All samples, prompt by prompt."""
    total = len(prompts) * sampler.settings.num_samples
    found: dict[int, Sampled] = {}
    with ProgressLine("sample", unit="texts", total=total) as progress:
        for order, sampled in sampler.run(prompts):
            found[order] = sampled
            progress.advance()
    return [found[order] for order in range(total)]


def readable(sample: Sampled) -> str:
    """A sample for the eye: its prompt in brackets, then how it goes on."""
    end = "" if sample.finished else " …"
    return f"{'-' * 72}\n[{sample.prompt}]{sample.text}{end}"


def _line(sample: Sampled) -> bytes:
    return orjson.dumps(asdict(sample), option=orjson.OPT_APPEND_NEWLINE)
