"""What ranks say to each other inside the model stands in one file."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "web2gpt"
LAYERS = (
    "attention", "cross_entropy", "dropout", "parameters", "pipeline", "plain", "recompute",
    "split", "tensor",
)  # fmt: skip
FILES = [PACKAGE / "parallel" / f"{name}.py" for name in LAYERS]


def imported(path: Path) -> set[str]:
    """All modules that a file imports, and what it takes out of them, dotted."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_layers_do_not_talk_themselves(path: Path) -> None:
    assert not [name for name in imported(path) if name.startswith("torch.distributed")]


@pytest.mark.parametrize(
    "path", sorted((PACKAGE / "model").glob("*.py")), ids=lambda path: path.stem
)
def test_the_model_knows_of_no_other_rank(path: Path) -> None:
    parallel = ("torch.distributed", "deepspeed", "web2gpt.parallel")
    assert not [name for name in imported(path) if name.startswith(parallel)]


def test_the_one_file_would_be_noticed() -> None:
    assert "torch.distributed" in imported(PACKAGE / "parallel" / "communication.py")
