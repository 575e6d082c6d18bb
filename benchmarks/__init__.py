"""What the engine costs: each figure beside its floor, measured in turns in the same run. ``python -m benchmarks``."""
