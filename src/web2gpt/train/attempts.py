"""What one attempt tells the next: whether it ended with an error that would only come again.

Snakemake retries a rule whatever its exit code was. A run that was stopped, killed or hung goes on
with the next attempt. One that ended with an error of its settings, files or numbers would meet it
again after all its start; the attempts that follow end at once, with that same error.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from web2gpt.errors import LeaseError, Web2gptError
from web2gpt.io.atomic import read_json, write_json
from web2gpt.train.launcher import LostRankError, StoppedError

PASSING = (LeaseError, LostRankError, StoppedError)
"""Errors that another attempt may not meet."""


class SameError(Web2gptError):
    """The error of the attempt before, which was not tried again."""


@contextmanager
def remembered(path: Path, attempt: int) -> Iterator[None]:
    """Make an attempt, whose error is kept in ``path`` for the next. The first is always made.

    Raises ``SameError`` in its place if the attempt before ended with an error that stays.
    """
    if attempt > 1 and path.is_file():
        failed = read_json(path)
        if failed["attempt"] in (attempt - 1, attempt):  # this one: another node has said it
            write_json(path, failed | {"attempt": attempt})
            raise SameError(failed["message"])
    path.unlink(missing_ok=True)
    try:
        yield
    except PASSING:
        raise
    except Web2gptError as error:
        with suppress(OSError):  # a full disk may be what it is about
            write_json(path, {"attempt": attempt, "message": str(error)})
        raise
