"""Stages clean and decontaminate: filters on documents."""
