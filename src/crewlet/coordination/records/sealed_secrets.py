"""The company's credentials, sealed: one sealed text for each variable's name, and no key to open it with (S0)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NewType

from crewlet.base.errors import Conflict
from crewlet.coordination.contract import RecordStore, Revision
from crewlet.coordination.keys import key_token
from crewlet.coordination.records.codec import SharedRecord, encode_record
from crewlet.coordination.records.stored import Stored, list_stored, read_stored

__all__ = ["SealedSecret", "SealedSecrets", "SealedText", "SecretEntry"]

SealedText = NewType("SealedText", str)
"""What the keyring sealed, as text. Nothing in this room reads it."""

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class SealedSecret(SharedRecord, frozen=True, kw_only=True):
    """One credential: the variable's name, the sealed text, which key opens it, and who set it from where."""

    name: str
    sealed: SealedText
    key_id: str
    updated_at: datetime
    updated_by: str = ""
    updated_by_kind: str = ""
    operator_id: str = ""
    source: str = ""

    def __repr__(self) -> str:
        return f"SealedSecret(name={self.name!r}, key_id={self.key_id!r}, sealed)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """What is shown where values are printed in colour: as ``repr``, never the sealed text."""
        return [("name", self.name), ("key_id", self.key_id)]


@dataclass(frozen=True, slots=True)
class SecretEntry:
    """What may be shown of a secret."""

    name: str
    key_id: str
    revision: Revision
    updated_at: datetime
    updated_by: str
    updated_by_kind: str
    operator_id: str
    source: str


class SealedSecrets:
    """The sealed credentials, by name. A secret goes when somebody unsets it, never by age.

    Nothing here fails open or closed by itself: every verb raises ``Unavailable``. A secret that cannot be read is not
    unset; whoever holds a value keeps it.
    """

    def __init__(self, store: RecordStore) -> None:
        self._store = store

    async def get(self, name: str) -> Stored[SealedSecret] | None:
        """The sealed secret and its revision, or ``None`` where none is set."""
        return await read_stored(self._store, SealedSecret, _key(name))

    async def set(self, secret: SealedSecret, *, expected: Revision | None) -> Revision:
        """The secret stands, over ``expected`` alone (``None``: it was not set); a repeat of the same call is harmless.

        Returns its revision. Raises ``Conflict`` where something else stands.
        """
        key = _key(secret.name)
        try:
            if expected is None:
                return (await self._store.create(key, encode_record(secret))).revision
            return (await self._store.update(key, encode_record(secret), expected=expected)).revision
        except Conflict:
            standing = await self.get(secret.name)
            if standing is None or standing.record != secret:
                raise
            return standing.revision

    async def unset(self, name: str, *, expected: Revision) -> None:
        """The secret that ``expected`` wrote is gone; one that is not set is no error. Raises ``Conflict``."""
        await self._store.delete(_key(name), expected=expected)

    async def entries(self) -> list[SecretEntry]:
        """What may be shown of every secret, by name."""
        return [_entry(each) for each in await self.every()]

    async def every(self) -> list[Stored[SealedSecret]]:
        """Every sealed secret, by name: for whoever holds the keyring."""
        return sorted(await list_stored(self._store, SealedSecret, "secret.>"), key=lambda each: each.record.name)


def _entry(each: Stored[SealedSecret]) -> SecretEntry:
    secret = each.record
    return SecretEntry(
        name=secret.name,
        key_id=secret.key_id,
        revision=each.revision,
        updated_at=secret.updated_at,
        updated_by=secret.updated_by,
        updated_by_kind=secret.updated_by_kind,
        operator_id=secret.operator_id,
        source=secret.source,
    )


def _key(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not the name of a variable: letters, digits and _, no digit first")
    return f"secret.{key_token(name)}"
