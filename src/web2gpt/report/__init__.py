"""Stage report: one page on the run."""
