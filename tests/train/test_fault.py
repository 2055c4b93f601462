"""What a failed rank tells: what to do where the user can do it, else where it happened."""

import errno
import os

import pytest
import torch

from web2gpt.errors import InputError
from web2gpt.train.fault import Fault


def of(error: BaseException) -> Fault:
    try:
        raise error
    except BaseException as raised:  # noqa: BLE001 - as the worker does
        return Fault.of(raised)


def test_our_own_errors_are_their_message() -> None:
    assert of(InputError("x.bin: not the file")) == Fault("x.bin: not the file", is_known=True)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_is_the_users_to_mend(number: int) -> None:
    fault = of(OSError(number, os.strerror(number), "metrics.jsonl"))
    assert fault.is_known and fault.message.startswith("train: metrics.jsonl: ")
    assert "run it again; what was done is kept" in fault.message


def test_a_full_gpu_is_the_users_to_mend() -> None:
    fault = of(torch.OutOfMemoryError("Tried to allocate 20.00 GiB."))
    assert fault.is_known and "20.00 GiB" in fault.message
    assert "train.micro_batch_size" in fault.message and "Traceback" not in fault.message


@pytest.mark.parametrize("error", [OSError(errno.EIO, "x"), RuntimeError("NCCL error"), KeyError()])
def test_anything_else_keeps_its_traceback(error: Exception) -> None:
    fault = of(error)
    assert not fault.is_known and "Traceback" in fault.message and __file__ in fault.message
