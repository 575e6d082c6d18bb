"""Crewlet runs a company of AI agents: durable mailboxes, one holder per seat, turns that can be accounted for."""

__all__ = ["__version__"]

__version__ = "0.1.0"
