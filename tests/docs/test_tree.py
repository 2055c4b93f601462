"""The annotated tree in README is the repository's."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.docs.guide import REPOSITORY

SHOWN_WHOLE = ("workflow", "src/web2gpt")
NOT_SHOWN = set(
    "LICENSE CHANGELOG.md README.md .ci .gitignore .containerignore pyproject.toml "
    ".snakemake-workflow-catalog.yml src/web2gpt/__init__.py src/web2gpt/py.typed "
    "src/web2gpt/errors.py".split()
)


def shown() -> Iterator[str]:
    """The paths of the tree, without patterns and slashes at their ends."""
    text = (REPOSITORY / "README.md").read_text().partition("## The tree")[2]
    lines = re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[0].splitlines()
    folder = ""
    for line in lines:
        names = re.match(r"( *)(\S+(?: \S+)*)", line)
        assert names, line
        if not names[1]:
            folder = ""
        for name in names[2].split(" "):
            path = f"{folder}{name.split('*')[0]}".rstrip("/")
            assert (REPOSITORY / path).exists(), path
            yield path
        if not names[1]:
            folder = names[2] if names[2].endswith("/") else ""


def tracked() -> set[str]:
    """What a reader finds in the repository, and in the folders that the tree shows whole."""
    listed = subprocess.run(["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True,
                            check=True).stdout.splitlines()  # fmt: skip
    found = {path.split("/")[0] for path in listed}
    for folder in SHOWN_WHOLE:
        depth = folder.count("/") + 2
        found |= {"/".join(path.split("/")[:depth]) for path in listed
                  if path.startswith(f"{folder}/")}  # fmt: skip
    return found


def test_the_tree_is_the_repositorys() -> None:
    paths = set(shown())
    told = paths | NOT_SHOWN | {path.split("/")[0] for path in paths}
    told |= {str(Path(path).parent) for path in paths}
    assert not tracked() - told
