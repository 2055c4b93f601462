"""Process grid, communication, tensor-parallel layers, pipeline.

Applied to the model from outside.
"""
