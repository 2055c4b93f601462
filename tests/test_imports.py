"""Packages import in one order, never backwards, and the command line starts light."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "web2gpt"
GROUND = {"errors", "__init__"}
DATA_STAGES = {"urls", "fetch", "extract", "dedup", "clean", "merge"}
AFTER = ("train", "sample", "evaluate", "report", "demo")
ALLOWED: dict[str, set[str]] = {
    "io": set(),
    "config": {"io"},
    "web": {"io", "config"},
    **{stage: {"io", "web", "config"} for stage in sorted(DATA_STAGES)},
    "tokens": {"io", "web", "config"},
    "model": {"io", "config", "tokens"},
    "parallel": {"io", "config", "tokens", "model"},
    "checkpoint": {"io", "config", "tokens", "model", "parallel"},
    **{
        stage: {"io", "web", "config", "tokens", "model", "parallel", "checkpoint"}
        for stage in AFTER
    },
}
HEAVY = ("torch", "deepspeed", "transformers", "trafilatura", "matplotlib", "polars", "pyarrow",
         "scipy", "datasketch", "aiohttp", "snakemake")  # fmt: skip


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Line and package of web2gpt of each import in a file, those inside functions too."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Import(names=names):
                modules = [alias.name for alias in names]
            case ast.ImportFrom(module="web2gpt", names=names):
                modules = [f"web2gpt.{alias.name}" for alias in names]
            case ast.ImportFrom(module=module, level=0):
                modules = [module or ""]
            case ast.ImportFrom():
                modules = ["web2gpt.a relative import"]
            case _:
                continue
        for module in modules:
            if module.split(".")[0] == "web2gpt" and "." in module:
                yield node.lineno, module.split(".")[1]


def test_the_order_names_every_package() -> None:
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert packages == set(ALLOWED)


def test_the_order_has_no_way_back() -> None:
    for package, allowed in ALLOWED.items():
        assert all(package not in ALLOWED[other] for other in allowed)


@pytest.mark.parametrize("package", ALLOWED)
def test_a_package_imports_only_what_comes_before_it(package: str) -> None:
    allowed = ALLOWED[package] | GROUND | {package, "__version__"}
    wrong = [
        f"{path.relative_to(PACKAGE)}:{line} imports {name}"
        for path in sorted((PACKAGE / package).rglob("*.py"))
        for line, name in imports(path)
        if name not in allowed
    ]
    assert wrong == []


def test_errors_import_nothing_of_ours() -> None:
    assert list(imports(PACKAGE / "errors.py")) == []


def test_the_order_would_notice_a_way_back(tmp_path: Path) -> None:
    file = tmp_path / "x.py"
    file.write_text(
        "import web2gpt.fetch.command\nfrom web2gpt import dedup\n"
        "def f():\n    from web2gpt.train.loop import run\n    from . import y\n"
    )
    assert list(imports(file)) == [(1, "fetch"), (2, "dedup"), (4, "train"),
                                   (5, "a relative import")]  # fmt: skip


def test_the_command_line_starts_without_the_heavy_libraries() -> None:
    code = "import sys, web2gpt.cli; print(*{name.split('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(HEAVY) & set(done.stdout.split()) == set()


def test_no_file_is_a_drawer_or_too_long() -> None:
    for path in PACKAGE.rglob("*.py"):
        assert path.stem not in {"utils", "util", "helpers", "misc", "common"}, path
        assert len(path.read_text().splitlines()) <= 350, path
