"""A stage's work folder: what it resumes from, held under an exclusive lease.

Results are made here and moved to their declared places at the end, all together, because the
workflow engine deletes a job's declared outputs before it starts and after it fails. What was
published stands in ``published.json``: a second copy of a job, started while the first ran on
alone, waits for the lease and then finds its work done. A job whose workflow was killed while it
ran on also keeps its results here, as further names of the same files: the next workflow takes
them for incomplete and deletes them, and the job puts them back.
"""

import os
import shutil
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any, Self

import orjson

from web2gpt.io.atomic import TEMPORARY, publish, read_json, write_json
from web2gpt.io.lease import Lease
from web2gpt.io.processes import ancestors

KEPT = "kept"


class WorkFolder:
    """``with WorkFolder(path, job) as work:`` owns ``path`` exclusively while the block runs.

    ``job`` is whatever decides the results: stage, version, settings, and the identity of inputs
    (see ``file_states``). A folder left behind by another job is emptied first.
    """

    def __init__(self, path: Path, job: Mapping[str, Any]):
        self.path = path
        self._job = blake2b(orjson.dumps(job, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]
        self._lease = Lease(path)
        self._ancestors = ancestors()

    def __enter__(self) -> Self:
        self._lease.__enter__()
        marker = self.path / "job"
        if not marker.exists() or marker.read_text() != self._job:
            self._clear()
            marker.write_text(self._job)
        self._remove_drafts()
        self._put_back()
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: Any) -> None:
        self._lease.__exit__(kind, *rest)

    def check(self) -> None:
        """Raise ``LeaseError`` if the lease was lost: to be called before anything irreversible."""
        self._lease.check()

    def is_published(self, targets: Iterable[Path]) -> bool:
        """Whether this very job has published all ``targets`` and they still stand unchanged.

        May be asked without holding the folder.
        """
        record, marker = self.path / "published.json", self.path / "job"
        return (
            record.exists()
            and marker.exists()
            and marker.read_text() == self._job
            and read_json(record) == file_states(targets)
        )

    def publish(self, files: Mapping[Path, Path], keep: tuple[str, ...] = ()) -> None:
        """Move each finished file (key, inside the folder) to its declared place (value). What
        else is in the folder goes, save entries named in ``keep``."""
        self.check()
        orphaned = ancestors() != self._ancestors
        if orphaned:
            self._keep(files)
        for source, target in files.items():
            publish(source, target)
        self._clear(keep=("job", *keep, *([KEPT] if orphaned else [])))
        write_json(self.path / "published.json", file_states(files.values()))

    def _keep(self, files: Mapping[Path, Path]) -> None:
        """Give the finished files further names in the folder, beside a list of their places."""
        folder = self.path / KEPT
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for number, source in enumerate(files):
            os.link(source, folder / str(number))
        write_json(folder / "targets.json", [str(target) for target in files.values()])

    def _put_back(self) -> None:
        """Publish again what this job made when its workflow was dead, if that was deleted."""
        folder = self.path / KEPT
        if (folder / "targets.json").exists():
            targets = [Path(target) for target in read_json(folder / "targets.json")]
            if not self.is_published(targets):
                for number, target in enumerate(targets):
                    publish(folder / str(number), target)
                write_json(self.path / "published.json", file_states(targets))
        shutil.rmtree(folder, ignore_errors=True)

    def _remove_drafts(self) -> None:
        """Files that a killed process of this job was writing."""
        for draft in self.path.rglob(f"{TEMPORARY}*"):
            if draft.is_dir() and not draft.is_symlink():
                shutil.rmtree(draft, ignore_errors=True)
            else:
                draft.unlink(missing_ok=True)

    def _clear(self, keep: tuple[str, ...] = ()) -> None:
        for entry in self.path.iterdir():
            if entry.name in keep or self._lease.owns(entry.name):
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()


def file_states(paths: Iterable[Path]) -> list[list[str | int]]:
    """Name, size and date of each file: enough to see that it is the one it was."""
    states: list[list[str | int]] = []
    for path in sorted(paths):
        try:
            state = path.stat()
        except FileNotFoundError:
            states.append([str(path), -1, -1])
        else:
            states.append([str(path), state.st_size, state.st_mtime_ns])
    return states
