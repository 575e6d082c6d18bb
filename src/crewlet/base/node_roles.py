"""What a node may do for the company; a node has every role unless its file says which."""

from __future__ import annotations

from typing import Final

__all__ = ["NODE_ROLES"]

NODE_ROLES: Final = ("ingress", "seats", "workers", "data")
"""Routing what arrives, running seats, the singleton duties, and keeping what happened."""
