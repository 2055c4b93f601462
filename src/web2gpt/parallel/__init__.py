"""Process grid, communication, tensor-parallel layers, pipeline: applied to the model from outside."""
