"""The layout is never changed: too few GPUs stop a run, and it is told what fits."""

import pytest

from web2gpt.config.training import Parallel, Train
from web2gpt.errors import ConfigError
from web2gpt.train import device
from web2gpt.train.device import choose_device, fitting_layout

LAYOUT = Parallel(tensor=2, pipeline=1, data=2)


@pytest.mark.parametrize(("gpus", "chosen"), [(4, "cuda"), (8, "cuda")])
def test_gpus_are_taken_when_there_are_enough(
    monkeypatch: pytest.MonkeyPatch, gpus: int, chosen: str
) -> None:
    monkeypatch.setattr(device, "gpu_count", lambda: gpus)
    assert choose_device(Train(), LAYOUT) == chosen
    assert choose_device(Train(device="cpu"), LAYOUT) == "cpu"


def test_with_too_few_only_a_run_that_says_so_takes_the_cpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(device, "gpu_count", lambda: 2)
    assert choose_device(Train(cpu_fallback=True), LAYOUT) == "cpu"
    with pytest.raises(ConfigError, match=r"4 GPUs, 2 found; parallel.tensor: 2, .* data: 1 fits"):
        choose_device(Train(), LAYOUT)
    with pytest.raises(ConfigError, match="4 GPUs"):
        choose_device(Train(device="cuda", cpu_fallback=True), LAYOUT)
    monkeypatch.setattr(device, "gpu_count", lambda: 0)
    with pytest.raises(ConfigError, match=r"train\.device: cpu runs it on the CPU"):
        choose_device(Train(), LAYOUT)


def test_each_node_brings_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "gpu_count", lambda: 2)
    assert choose_device(Train(), LAYOUT, nodes=2) == "cuda"


@pytest.mark.parametrize(
    ("gpus", "tensor", "pipeline", "data"), [(8, 4, 2, 1), (5, 4, 1, 1), (3, 2, 1, 1), (1, 1, 1, 1)]
)
def test_replicas_are_given_up_first_then_stages_then_tensor_parallelism(
    gpus: int, tensor: int, pipeline: int, data: int
) -> None:
    fitting = fitting_layout(Parallel(tensor=4, pipeline=2, data=3), gpus)
    assert (fitting.tensor, fitting.pipeline, fitting.data) == (tensor, pipeline, data)


def test_gpus_hidden_by_the_environment_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "_torch_has_cuda", lambda: True)
    for visible, count in (("", 0), ("-1", 0), ("0,3", 2), ("MIG-1,MIG-2,MIG-3", 3)):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        assert device.gpu_count() == count
