"""Checkpoints that any layout can read: save, load, merge, export."""
