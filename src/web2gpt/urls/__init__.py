"""Stage urls: which URLs are worth fetching."""
