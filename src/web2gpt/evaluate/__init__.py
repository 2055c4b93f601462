"""Stage evaluate: loss and perplexity on held-out text."""
