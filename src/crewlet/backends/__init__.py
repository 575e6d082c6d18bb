"""Implementations of the queue and of the record store; only ``node`` picks one."""
