"""The commands of ``python -m arrowdl`` about a source: inspect and bench."""
