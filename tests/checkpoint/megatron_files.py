"""Checkpoints as Megatron-LM and Megatron-DeepSpeed write them, made from a known model by the
formats' description, with the classes and random states that such files carry."""

import argparse
import enum
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import GPT2LMHeadModel

MULTIPLE = 8  # of the padded vocabulary, times ranks

_NAMES = {
    "ln_1": "input_layernorm",
    "attn.c_attn": "attention.query_key_value",
    "attn.c_proj": "attention.dense",
    "ln_2": "post_attention_layernorm",
    "mlp.c_fc": "mlp.dense_h_to_4h",
    "mlp.c_proj": "mlp.dense_4h_to_h",
}


def ordered(qkv: Tensor, version: int, heads: int) -> Tensor:
    """Query, key, value of a rank, [3, heads, size, …] as rows, in the order of the version."""
    size = qkv.shape[0] // 3 // heads
    parts = qkv.view(3, heads, size, *qkv.shape[1:])
    if version == 0:
        return qkv.clone()
    if version == 1:  # [heads, size, 3]
        return torch.stack(tuple(parts), dim=2).reshape(qkv.shape)
    return torch.stack(tuple(parts), dim=1).reshape(qkv.shape)  # [heads, 3, size]


def shard_of(theirs: GPT2LMHeadModel, name: str, version: int, tensor: int, rank: int) -> Tensor:
    """A rank's share of the tensor with Hugging Face's name, matrices as [out, in]."""
    value = theirs.transformer.state_dict()[name].detach()
    if ".c_" in name and name.endswith("weight"):
        value = value.t()
    if name == "wte.weight":
        rows = -(-len(value) // (MULTIPLE * tensor)) * MULTIPLE * tensor
        padded = torch.full((rows, value.shape[1]), 7.0)
        padded[: len(value)] = value
        return padded.chunk(tensor)[rank].clone()
    if ".c_attn." in name:
        heads = theirs.config.n_head // tensor
        rows = [part.chunk(tensor)[rank] for part in value.chunk(3)]
        return ordered(torch.cat(rows), version, heads)
    if ".c_fc." in name:
        return value.chunk(tensor)[rank].clone()
    if ".c_proj.weight" in name:
        return value.chunk(tensor, dim=1)[rank].contiguous()
    return value.clone()


def layer_of(
    theirs: GPT2LMHeadModel, layer: int, version: int, tensor: int, rank: int
) -> dict[str, Tensor]:
    """A block's tensors under Megatron's names."""
    return {
        f"{their}.{kind}": shard_of(theirs, f"h.{layer}.{our}.{kind}", version, tensor, rank)
        for our, their in _NAMES.items()
        for kind in ("weight", "bias")
    }


@contextmanager
def megatron_classes() -> Iterator[Any]:
    """Modules under the systems' names, as long as a file is written."""
    enums = ModuleType("megatron.model.enums")
    scaler = ModuleType("deepspeed_like")

    class PositionEmbeddingType(enum.Enum):
        absolute = 2

    class DynamicLossScaler:
        def __init__(self) -> None:
            self.cur_scale = 65536.0

    PositionEmbeddingType.__module__ = "megatron.model.enums"
    PositionEmbeddingType.__qualname__ = "PositionEmbeddingType"
    DynamicLossScaler.__module__ = "fp16.loss_scaler"
    DynamicLossScaler.__qualname__ = "DynamicLossScaler"
    enums.PositionEmbeddingType = PositionEmbeddingType
    scaler.DynamicLossScaler = DynamicLossScaler
    names = {
        "megatron": ModuleType("megatron"),
        "megatron.model": ModuleType("megatron.model"),
        "megatron.model.enums": enums,
        "fp16": ModuleType("fp16"),
        "fp16.loss_scaler": scaler,
    }
    before = {name: sys.modules.get(name) for name in names}
    sys.modules.update(names)
    try:
        yield PositionEmbeddingType.absolute, DynamicLossScaler()
    finally:
        for name, module in before.items():
            sys.modules.pop(name)
            if module is not None:
                sys.modules[name] = module


def beside_the_model(theirs: GPT2LMHeadModel, version: int, **args: Any) -> dict[str, Any]:
    """What stands in a rank's file beside the model."""
    with megatron_classes() as (position, scaler):
        settings = argparse.Namespace(
            num_attention_heads=theirs.config.n_head,
            layernorm_epsilon=theirs.config.layer_norm_epsilon,
            params_dtype=torch.float16,
            position_type=position,
            data_path=["a", "b"],
            **args,
        )
    return {
        "args": settings,
        **({"checkpoint_version": float(version)} if version else {}),
        "iteration": 5,
        "optimizer": {"state": {0: {"exp_avg": torch.ones(9)}}, "loss_scaler": scaler},
        "lr_scheduler": {"num_steps": 5},
        "random_rng_state": random.getstate(),
        "np_rng_state": np.random.get_state(),
        "torch_rng_state": torch.get_rng_state(),
    }


def save(content: dict[str, Any], path: Path, *, zipped: bool = True) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with megatron_classes() as (position, scaler):
        if "args" in content and hasattr(content["args"], "position_type"):
            content["args"].position_type = position
        if "optimizer" in content:
            content["optimizer"]["loss_scaler"] = scaler
        torch.save(content, path, _use_new_zipfile_serialization=zipped)


def write_ranks(
    theirs: GPT2LMHeadModel,
    folder: Path,
    *,
    version: int = 3,
    tensor: int = 1,
    pipeline: int = 1,
    dtype: torch.dtype = torch.float32,
    zipped: bool = True,
    **args: Any,
) -> Path:
    """``iter_0000005/mp_rank_TT[_PPP]/model_optim_rng.pt`` and the tracker file."""
    layers = theirs.config.n_layer // pipeline
    for rank in range(tensor):
        for stage in range(pipeline):
            encoder: dict[str, Tensor] = {}
            for local in range(layers):
                own = layer_of(theirs, stage * layers + local, version, tensor, rank)
                encoder |= {f"layers.{local}.{key}": value for key, value in own.items()}
            model: dict[str, Any] = {"language_model": {"transformer": encoder}}
            wte = shard_of(theirs, "wte.weight", version, tensor, rank)
            if stage == 0:
                model["language_model"]["embedding"] = {
                    "word_embeddings": {"weight": wte},
                    "position_embeddings": {
                        "weight": shard_of(theirs, "wpe.weight", version, tensor, rank)
                    },
                }
            if stage == pipeline - 1:
                for kind in ("weight", "bias"):
                    encoder[f"final_layernorm.{kind}"] = shard_of(
                        theirs, f"ln_f.{kind}", version, tensor, rank
                    )
                if stage:
                    model["word_embeddings_for_head"] = {"weight": wte.clone()}
            name = f"mp_rank_{rank:02d}" + (f"_{stage:03d}" if pipeline > 1 else "")
            content = {"model": cast(model, dtype), **beside_the_model(theirs, version, **args)}
            save(content, folder / "iter_0000005" / name / "model_optim_rng.pt", zipped=zipped)
    (folder / "latest_checkpointed_iteration.txt").write_text("5")
    return folder


def write_layers(theirs: GPT2LMHeadModel, folder: Path, *, tensor: int = 1, **args: Any) -> Path:
    """``global_step5/layer_NN-model_TT-model_states.pt`` and the tracker file; version 3."""
    step, count = folder / "global_step5", theirs.config.n_layer
    for rank in range(tensor):
        share = {"version": 3, "tensor": tensor, "rank": rank}
        wte = shard_of(theirs, "wte.weight", **share)
        wpe = shard_of(theirs, "wpe.weight", **share)
        files = {1: {"word_embeddings.weight": wte, "position_embeddings.weight": wpe}}
        for layer in range(count):
            own = layer_of(theirs, layer, **share)
            files[3 + layer] = {
                key.replace("attention.", "self_attention.") if key.startswith("att") else key: v
                for key, v in own.items()
            }
        files[count + 4] = {
            kind: shard_of(theirs, f"ln_f.{kind}", **share) for kind in ("weight", "bias")
        }
        for number, content in files.items():
            save(content, step / f"layer_{number:02d}-model_{rank:02d}-model_states.pt")
        beside = beside_the_model(theirs, 3, **args)
        save({"module": None, **beside}, step / f"mp_rank_{rank:02d}_model_states.pt")
        save({"optimizer_state_dict": {}}, step / f"zero_pp_rank_0_mp_rank_{rank:02d}.pt")
    (folder / "latest").write_text("global_step5")
    return folder


def cast(value: Any, dtype: torch.dtype) -> Any:
    """All tensors of a nested dict in another type."""
    if isinstance(value, dict):
        return {key: cast(inner, dtype) for key, inner in value.items()}
    return value.to(dtype)
