"""web2gpt: from a list of URLs to a trained GPT-2, one stage at a time."""

__version__ = "0.1.0"
