"""Reading what another command made, which a user may have named wrongly or damaged."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from web2gpt.errors import InputError


@contextmanager
def made_by(stage: str, path: Path) -> Iterator[None]:
    """Say of ``path`` that it is not what ``stage`` writes if the block cannot read it as such.

    The block opens the file and looks up what it must hold: JSON, parquet, keys, columns.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such file; run {stage} first.") from error
    except (IsADirectoryError, NotADirectoryError) as error:
        raise InputError(f"{path}: not a file; name the one that {stage} wrote.") from error
    except PermissionError as error:
        raise InputError(f"{path}: may not be read; allow it, or name another file.") from error
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise InputError(
            f"{path}: not what {stage} writes, or damaged; run {stage} again, or name another file."
        ) from error
