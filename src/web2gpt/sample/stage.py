"""The stage sample: texts drawn from a Hugging Face GPT-2 folder into samples.jsonl."""

from dataclasses import asdict, dataclass
from pathlib import Path

import orjson
import torch

from web2gpt.checkpoint.huggingface import Stated, load_model
from web2gpt.config.outputs import SampleRun
from web2gpt.config.versions import VERSIONS
from web2gpt.io.atomic import write_bytes
from web2gpt.io.progress import ProgressLine
from web2gpt.io.work import WorkFolder, file_states
from web2gpt.model.device import prepare_device
from web2gpt.model.gpt2 import GPT2
from web2gpt.sample.drawable import Drawable
from web2gpt.sample.generate import Sampled, Sampler
from web2gpt.sample.prompts import read_prompts


@dataclass(frozen=True)
class SampleFiles:
    """Where the stage reads and writes."""

    model: Path
    output: Path
    work: Path


def sample_model(files: SampleFiles, settings: SampleRun) -> None:
    """Write samples.jsonl, one text a line in the order of the prompts, and print the texts.

    Raises ``InputError`` if the folder holds no model that is computed here.
    """
    inputs = [path for path in files.model.glob("*") if path.is_file()]
    inputs += [Path(settings.prompts_file)] if settings.prompts_file else []
    job = {
        "stage": "sample",
        "version": VERSIONS["sample"],
        "settings": settings.model_dump(mode="json"),
        "inputs": file_states(inputs),
    }
    with WorkFolder(files.work, job) as work:
        if work.is_published([files.output]):
            print(f"sample: {files.output} is there already", flush=True)
            return
        device = prepare_device(settings.device, settings.threads)
        samples = draw_samples(*load_model(files.model, device), files.model, settings)
        draft = work.path / files.output.name
        write_bytes(draft, b"".join(_line(sample) for sample in samples))
        work.publish({draft: files.output})
    print("\n".join(readable(sample) for sample in samples))
    ended = sum(sample.finished for sample in samples)
    tokens = sum(sample.length for sample in samples)
    print(f"sample: {len(samples)} texts, {tokens:,} tokens, {ended} came to an end", flush=True)


def draw_samples(model: GPT2, stated: Stated, folder: Path, settings: SampleRun) -> list[Sampled]:
    """All samples, prompt by prompt."""
    drawable = Drawable.of(folder, stated.vocab_size, stated.end_of_text)
    prompts = read_prompts(settings)
    total = len(prompts) * settings.num_samples
    found: dict[int, Sampled] = {}
    with ProgressLine("sample", unit="texts", total=total) as progress, torch.inference_mode():
        sampler = Sampler(model, stated.model, drawable, settings)
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
