"""What a run before this one published, kept for a later one that only retries failures.

The workflow deletes a job's declared outputs before it starts, so archive and outcomes are kept in
the work folder too, as further names (hard links) of the same files, which cost no space. ``round``
is the value of ``fetch.retry_failed`` under which they were made: a greater one asks for another
round. They are kept before the outputs are published, so a run that is killed in between is not
lost either; ``is_published`` tells that case from outputs deleted on purpose.
"""

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from web2gpt.fetch.exchange import may_pass
from web2gpt.io.atomic import read_json, temporary_name, write_json
from web2gpt.io.shards import read_jsonl

FOLDER = "earlier"


@dataclass(frozen=True)
class Earlier:
    """Archive and outcomes of all URLs of a list, in its order."""

    folder: Path
    round: int
    is_published: bool

    @classmethod
    def find(cls, work: Path) -> Self | None:
        """What ``work`` keeps, if anything."""
        folder = work / FOLDER
        if not folder.exists():
            return None
        state = read_json(folder / "state.json")
        return cls(folder, state["round"], state["is_published"])

    @classmethod
    def keep(
        cls, work: Path, number: int, archive: Path, outcomes: Path, places: npt.NDArray[np.int64]
    ) -> Self:
        """Keep finished files. ``places[n]`` and ``places[n + 1]`` bound URL ``n``'s records."""
        draft, folder = temporary_name(work / FOLDER), work / FOLDER
        draft.mkdir()
        _link(archive, draft / "pages.warc.gz")
        _link(outcomes, draft / "outcomes.jsonl.zst")
        np.save(draft / "places.npy", places)
        write_json(draft / "state.json", {"round": number, "is_published": False})
        shutil.rmtree(folder, ignore_errors=True)
        os.rename(draft, folder)
        return cls(folder, number, False)

    def mark_published(self) -> None:
        """Note that the outputs stand at their declared places."""
        write_json(self.folder / "state.json", {"round": self.round, "is_published": True})

    def discard(self) -> None:
        shutil.rmtree(self.folder)

    def failed(self) -> npt.NDArray[np.bool_]:
        """Which URLs failed for a reason that may have passed."""
        return np.array([may_pass(outcome["outcome"]) for outcome in self._outcomes()], np.bool_)

    def entries(self) -> Iterator[tuple[dict[str, Any], bytes]]:
        """Outcome and records of each URL, in the list's order."""
        places = np.load(self.folder / "places.npy", allow_pickle=False)
        with (self.folder / "pages.warc.gz").open("rb") as archive:
            archive.seek(int(places[0]))
            for number, outcome in enumerate(self._outcomes()):
                yield outcome, archive.read(int(places[number + 1] - places[number]))

    def _outcomes(self) -> Iterator[dict[str, Any]]:
        for outcome in read_jsonl(self.folder / "outcomes.jsonl.zst"):
            assert isinstance(outcome, dict)
            yield outcome


def _link(source: Path, target: Path) -> None:
    """Give a finished file a further name; where the file system has no links, a copy."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
