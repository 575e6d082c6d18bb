"""Which texts of the company document are credentials, and how they must be written: as ``${VAR}``, never literally."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from crewlet.base.errors import Problem
from crewlet.org.variable_references import has_reference

__all__ = ["credential_in_url", "literal_credentials", "reference_needed"]

_SECRET_NAME: Final = re.compile(r"TOKEN|KEY|SECRET|PASSWORD|PASSWD|AUTHORIZATION|CREDENTIAL|COOKIE", re.IGNORECASE)
_USER_INFO: Final = re.compile(r"^[a-zA-Z][a-zA-Z0-9+.-]*://([^/@]+)@")


def credential_in_url(url: str) -> bool:
    """Whether ``url`` carries a user or password in clear."""
    found = _USER_INFO.match(url)
    return found is not None and not has_reference(found.group(1))


def reference_needed(path: str, problem: str) -> Problem:
    """The refusal of a credential in clear. It never repeats the value."""
    return Problem(path, problem, "put the secret into the environment and write ${VAR} here")


def literal_credentials(path: str, variables: Mapping[str, str]) -> Iterator[Problem]:
    """The values that stand in clear under a name that says credential."""
    for name, value in variables.items():
        if value and _SECRET_NAME.search(name) and not has_reference(value):
            yield reference_needed(f"{path}.{name}", "a credential must not stand here in clear")
