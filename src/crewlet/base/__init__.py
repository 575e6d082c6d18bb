"""What every room may lean on: clocks, ids, errors, bounds, supervised tasks and a few small protocols."""
