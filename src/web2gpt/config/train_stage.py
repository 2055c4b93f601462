"""The sections of the configuration that the train command takes together."""

from pydantic import model_validator

from web2gpt.config.base import Settings
from web2gpt.config.derive import check_layout
from web2gpt.config.sources import Run
from web2gpt.config.training import Model, Optimizer, Parallel, Schedule, Train


class TrainStage(Settings):
    """All that one training run depends on, beside tokens and tokenizer."""

    run: Run = Run()
    model: Model = Model()
    parallel: Parallel = Parallel()
    optimizer: Optimizer = Optimizer()
    schedule: Schedule = Schedule()
    train: Train = Train()

    @model_validator(mode="after")
    def _layout_fits(self) -> "TrainStage":
        check_layout(self.model, self.parallel, self.train)
        return self
