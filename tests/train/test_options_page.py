"""docs/options.md: each option of the old training scripts stands there, and names what we have."""

import re
from pathlib import Path

from web2gpt.config.root import Config

PAGE = (Path(__file__).parents[2] / "docs" / "options.md").read_text()

OLD = """
num-layers hidden-size num-attention-heads ffn-hidden-size kv-channels seq-length
max-position-embeddings make-vocab-size-divisible-by pad-vocab-size-to layernorm-epsilon
position-embedding-type embed-layernorm glu-activation apply-residual-connection-post-layernorm
openai-gelu sync-tp-duplicated-parameters

micro-batch-size batch-size global-batch-size rampup-batch-size train-iters train-samples
train-tokens checkpoint-activations checkpoint-num-layers distribute-checkpointed-activations
deepspeed-activation-checkpointing partition-activations contigious-checkpointing checkpoint-in-cpu
exit-interval exit-duration-in-mins kill-switch-path skip-train-iteration-range eval-only optimizer
use-bnb-optimizer cpu-optimizer no-masked-softmax-fusion no-bias-gelu-fusion
no-bias-dropout-fusion pp-partition-method

attention-dropout hidden-dropout weight-decay clip-grad adam-beta1 adam-beta2 adam-eps

seed init-method-std init-method-xavier-uniform

lr min-lr lr-decay-style lr-decay-iters lr-decay-samples lr-decay-tokens lr-warmup-fraction
lr-warmup-iters lr-warmup-samples warmup override-lr-scheduler use-checkpoint-lr-scheduler

save load save-interval no-save-optim no-save-rng no-load-optim no-load-rng finetune
universal-checkpoint

fp16 bf16 loss-scale initial-loss-scale min-loss-scale loss-scale-window hysteresis
fp32-residual-connection no-query-key-layer-scaling attention-softmax-in-fp32
accumulate-allreduce-grads-in-fp32 fp16-lm-cross-entropy

tensor-model-parallel-size model-parallel-size pipeline-model-parallel-size
num-layers-per-virtual-pipeline-stage DDP-impl distributed-backend zero-stage remote-device
use-cpu-initialization deepspeed deepspeed_config

eval-iters eval-interval data-path split data-impl tokenizer-type vocab-file merge-file num-workers
resume-dataloader lazy-loader

log-interval log-params-norm log-num-zeros-in-grad tensorboard-dir tensorboard-log-interval
tensorboard-queue-size log-timers-to-tensorboard log-batch-size-to-tensorboard
log-validation-ppl-to-tensorboard no-log-learnig-rate-to-tensorboard
no-log-loss-scale-to-tensorboard codecarbon-dir log-level
""".split()
"""As they are spelt there."""

SCRIPTS = "pretrain_gpt2.sh pretrain_gpt2_distributed.sh pretrain_gpt2_model_parallel.sh".split()


def test_every_old_option_has_its_line() -> None:
    missing = [name for name in OLD if not re.search(rf"--{re.escape(name)}(?![\w-])", PAGE)]
    assert not missing


def test_every_old_script_has_its_preset() -> None:
    assert not [script for script in SCRIPTS if script not in PAGE]


def test_settings_that_it_names_exist() -> None:
    sections = {
        name: field.annotation.model_fields.keys()
        for name, field in Config.model_fields.items()
        if hasattr(field.annotation, "model_fields")
    }
    named = re.findall(rf"\b({'|'.join(sections)})\.([a-z_0-9]+)(?!\.yaml)\b", PAGE)
    assert len(named) > 30
    assert not [f"{part}.{name}" for part, name in named if name not in sections[part]]
