"""What the same work costs without the engine: small programs that import nothing of it."""
