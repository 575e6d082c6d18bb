"""The twins: second implementations that live in this process, held to the same contracts."""
