"""Merging takes the memory of its largest tensor, not of the model."""

import json
import resource
import subprocess
import sys
from pathlib import Path

import checkpoint_files
import pytest
from checkpoint_files import write_checkpoint

from web2gpt.checkpoint.merge import MergeFiles, merge_checkpoint
from web2gpt.config.outputs import MergeCheckpoint
from web2gpt.config.training import Model
from web2gpt.model.gpt2 import GPT2
from web2gpt.model.initialization import initialize

DEEP = Model(n_layer=64, n_embd=192, n_head=4, n_positions=16, vocab_multiple=8)
WEIGHTS = 110_000_000  # bytes, of 64 layers; the largest tensor has 0.6 million
ROOM = 40_000_000  # bytes that merging may take beyond what its libraries took


def merge_within_limit(root: Path, tokenizer: Path) -> None:
    """The child's work: no private memory beyond ``ROOM`` from here on."""
    status = Path("/proc/self/status").read_text().split()
    held = int(status[status.index("VmData:") + 1]) * 1024
    resource.setrlimit(resource.RLIMIT_DATA, (held + ROOM, held + ROOM))
    files = MergeFiles(root / "done.json", tokenizer, root / "model", root / "work")
    merge_checkpoint(files, MergeCheckpoint(verify="slices"))


@pytest.mark.long
def test_a_model_larger_than_the_memory_it_may_take_is_merged(
    tmp_path: Path, tokenizer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint_files, "MODEL", DEEP)
    model = GPT2(DEEP, checkpoint_files.VOCAB)
    initialize(model.tensors(), DEEP, seed=1)
    folder = write_checkpoint(tmp_path / "step", model, 2, 1)
    (tmp_path / "done.json").write_text(json.dumps({"checkpoint": str(folder)}))
    command = [sys.executable, __file__, str(tmp_path), str(tokenizer)]
    child = subprocess.run(command, capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stderr
    assert (tmp_path / "model" / "model.safetensors").stat().st_size > WEIGHTS


if __name__ == "__main__":
    import torch

    torch.set_num_threads(1)
    merge_within_limit(Path(sys.argv[1]), Path(sys.argv[2]))
