"""When blocks and loss are compiled: never where it cannot be, never without being told of."""

import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch._inductor import config
from torch._inductor.virtualized import V

from web2gpt.config.training import Model
from web2gpt.errors import ConfigError
from web2gpt.model.gpt2 import Block
from web2gpt.parallel import compile as compiling
from web2gpt.parallel.compile import compile_block, decide, failure, loss_kernels, missing
from web2gpt.parallel.inductor import Choices

CPU = torch.device("cpu")


def test_by_default_a_cpu_is_left_alone() -> None:
    assert not decide("auto", CPU).on
    assert not decide("off", CPU).on


def test_on_without_a_compiler_is_an_error_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(ConfigError, match="no C compiler"):
        decide("on", CPU)


@pytest.mark.skipif(not shutil.which("g++"), reason="torch.compile needs a C++ compiler here")
def test_inductor_heeds_our_heuristics() -> None:
    def heeded() -> type:
        torch.compiler.reset()
        with config.patch(force_disable_caches=True):
            loss_kernels(compiled=True).statistics(torch.randn(4, 256), torch.zeros(4).long(), 250)
        return type(V.choices)

    with ThreadPoolExecutor(1) as new:  # they are a thread's own, from what it compiles first
        assert new.submit(heeded).result() is Choices


def test_a_gpu_needs_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(compiling.importlib.util, "find_spec", lambda name: None)
    assert missing(torch.device("cuda")) == "Triton is not installed"


def test_a_compiler_that_fails_is_found_out_before_training(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(graph: object, inputs: object) -> None:
        raise OSError("no room for its files")

    monkeypatch.setattr(compiling, "BACKEND", broken)
    assert "torch.compile fails here" in failure(CPU)
    with pytest.raises(ConfigError, match=r"compile: on, but .*fails here.*set it to auto or off"):
        decide("on", CPU)
    monkeypatch.setattr(compiling, "BACKEND", "eager")
    assert failure(CPU) == ""


@pytest.mark.skipif(not shutil.which("g++"), reason="torch.compile needs a C++ compiler here")
def test_a_compiled_block_drops_what_it_would_drop_uncompiled() -> None:
    model = Model(n_layer=1, n_head=2, n_embd=64, n_positions=64, attn_pdrop=0.1, resid_pdrop=0.1)
    block, x = Block(model), torch.randn(2, 64, 64)
    torch.manual_seed(5)
    plain = block(x)
    compile_block(block)
    torch.manual_seed(5)
    assert torch.allclose(block(x), plain, atol=1e-5)
    assert not torch.allclose(block(x), plain, atol=1e-2), "a control: other masks"
