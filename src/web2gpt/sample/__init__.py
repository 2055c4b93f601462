"""Stage sample: text drawn from the model."""
