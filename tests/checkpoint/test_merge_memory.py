"""Merging takes the memory of its largest tensor, not of the model."""

import json
import subprocess
import sys
import threading
from pathlib import Path

import checkpoint_files
import pytest
from checkpoint_files import write_checkpoint

from web2gpt.checkpoint.merge import MergeFiles, merge_checkpoint
from web2gpt.config.outputs import MergeCheckpoint
from web2gpt.config.training import Model
from web2gpt.model.gpt2 import GPT2

SIZES = {"n_embd": 192, "n_head": 4, "n_positions": 16, "vocab_multiple": 8}
MORE = 90_000_000  # bytes that the weights of 64 layers have more than those of 8
ROOM = 15_000_000  # bytes that merging them may take more; the largest tensor has 0.6 million


def held() -> int:
    """Bytes of private memory in use; pages of mapped files are the kernel's to drop."""
    status = Path("/proc/self/status").read_text().split()
    return int(status[status.index("RssAnon:") + 1]) * 1024


def merge_and_watch(root: Path, tokenizer: Path) -> None:
    """The child's work: print how much more memory than at the start was in use at most."""
    start, peak, done = held(), 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.002):
            peak = max(peak, held())

    watcher = threading.Thread(target=watch)
    watcher.start()
    files = MergeFiles(root / "done.json", tokenizer, root / "model", root / "work")
    merge_checkpoint(files, MergeCheckpoint(verify="slices"))
    done.set()
    watcher.join()
    print(peak - start)


def peak_of(layers: int, root: Path, tokenizer: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    model = Model(n_layer=layers, **SIZES)
    monkeypatch.setattr(checkpoint_files, "MODEL", model)
    gpt2 = GPT2(model, checkpoint_files.VOCAB)
    folder = write_checkpoint(root / "step", gpt2, 2, 1)
    (root / "done.json").write_text(json.dumps({"checkpoint": str(folder)}))
    command = [sys.executable, __file__, str(root), str(tokenizer)]
    child = subprocess.run(command, capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stderr
    return int(child.stdout.split()[-1])


@pytest.mark.long
def test_merging_a_deeper_model_takes_no_more_memory(
    tmp_path: Path, tokenizer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flat = peak_of(8, tmp_path / "8", tokenizer, monkeypatch)
    deep = peak_of(64, tmp_path / "64", tokenizer, monkeypatch)
    sizes = [(tmp_path / n / "model" / "model.safetensors").stat().st_size for n in ("8", "64")]
    assert sizes[1] - sizes[0] > MORE
    assert deep - flat < ROOM


if __name__ == "__main__":
    import torch

    torch.set_num_threads(1)
    merge_and_watch(Path(sys.argv[1]), Path(sys.argv[2]))
