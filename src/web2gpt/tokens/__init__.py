"""Tokenizer, indexed dataset (.bin/.idx), sample index, blending."""
