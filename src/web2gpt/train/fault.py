"""What a rank that failed has to tell: a message for the user, or a traceback for whoever mends it.

Beside our own errors, two of the machine's are the user's to mend: a full disk, and a full GPU.
"""

import errno
import traceback
from dataclasses import dataclass
from typing import Self

from web2gpt.errors import Web2gptError, of_the_system

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True)
class Fault:
    """``is_known``: the message says what to do, and trying again without doing it is in vain."""

    message: str
    is_known: bool

    @classmethod
    def of(cls, error: BaseException) -> Self:
        """What ``error``, as it is being handled, comes to."""
        if isinstance(error, Web2gptError):
            return cls(str(error), is_known=True)
        if isinstance(error, OSError) and error.errno in FULL:
            return cls(f"train: {of_the_system(error)}", is_known=True)
        if type(error).__name__ == "OutOfMemoryError":  # torch's, which is not imported for this
            return cls(
                f"train: the GPU's memory is full ({error}). Lower train.micro_batch_size, set "
                "train.recompute: full, or share the model out (parallel.zero, tensor, pipeline); "
                "`web2gpt estimate` shows what takes how much.",
                is_known=True,
            )
        return cls(traceback.format_exc(), is_known=False)
