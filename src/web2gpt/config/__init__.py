"""The configuration: one frozen, typed class a section, validated once, defaults here only."""
