"""Files that appear whole or not at all, work folders, shards, and stage statistics."""
