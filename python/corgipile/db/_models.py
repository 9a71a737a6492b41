"""Models in the database."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from .._checks import check_number, check_text
from ._connections import connected
from ._extension import schema, select


@dataclass(frozen=True)
class Exported:
    """A model's document, and what the database knows of it besides."""

    document: dict[str, Any]
    model_id: int
    version: int | None


def export(conn: Any, model: str | int, version: int | None = None) -> Exported:
    """The document of a model by name or id."""
    with connected(conn) as conn:
        model_id = find(conn, model, version)
        _, rows = select(
            conn,
            f"""SELECT {schema(conn)}.corgipile_export(m.model_id), m.version
                  FROM corgipile.models AS m WHERE m.model_id = %s""",
            [model_id],
        )
    if not rows:
        raise LookupError(f"there is no model {model_id} that you may use")
    return Exported(read(rows[0][0]), model_id, rows[0][1])


def read(document: Any) -> Any:
    """A document, also if the connection gives JSON as it is written."""
    return json.loads(document) if isinstance(document, str | bytes) else document


def find(conn: Any, model: str | int, version: int | None = None) -> int:
    """The id of a model by name or id. The server resolves names: digits are an id, unless you have a model of that
    name.

    Raises:
        LookupError: the version does not exist. psycopg.Error: the name does not exist, or refers to models of several
            owners.
    """
    if version is not None:
        check_number("version", version, 1)
    if isinstance(model, bool) or not isinstance(model, int | str):
        raise TypeError(f"model is a name or an id, not {type(model).__name__}")
    if isinstance(model, int):
        if version is not None:
            raise ValueError("version goes with a name: an id is one version already")
        return model
    schema(conn)  # raises an error that says what to do if there is no extension
    _, rows = select(conn, "SELECT corgipile.version_id(%s::text, NULL)", [check_text("model", model, "faults")])
    if version is None:
        return rows[0][0]
    _, rows = select(
        conn,
        """SELECT m.model_id FROM corgipile.models AS m, corgipile.models AS meant
            WHERE meant.model_id = %s AND m.name = meant.name AND m.owner = meant.owner AND m.version = %s""",
        [rows[0][0], version],
    )
    if not rows:
        raise LookupError(f"there is no version {version} of model {model!r} that you may use")
    return rows[0][0]
