"""The embedded demo: a small web site made from documentation strings."""
