"""Models as the database has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._checks import check_number, check_text
from ._connections import check_connection
from ._extension import schema, select

if TYPE_CHECKING:
    import psycopg


@dataclass(frozen=True)
class Exported:
    """A model's document, and what the database knows of it besides."""

    document: dict[str, Any]
    model_id: int
    version: int | None


def export(conn: psycopg.Connection[Any], model: str | int, version: int | None = None) -> Exported:
    """The document of a model by name or id."""
    model_id = find(conn, model, version)
    _, rows = select(
        conn,
        f"""SELECT {schema(conn)}.corgipile_export(m.model_id), m.version
              FROM corgipile.models AS m WHERE m.model_id = %s""",
        [model_id],
    )
    if not rows:
        raise LookupError(f"there is no model {model_id} that you may use")
    return Exported(rows[0][0], model_id, rows[0][1])


def find(conn: psycopg.Connection[Any], model: str | int, version: int | None = None) -> int:
    """The id of a model by name or id. Whose model a name means is left to the server, which has rules for that.

    Raises:
        LookupError: there is no such version.
        psycopg.Error: there is no such name, or it may mean models of several owners.
    """
    check_connection(conn)
    if version is not None:
        check_number("version", version, 1)
    if isinstance(model, bool) or not isinstance(model, int | str):
        raise TypeError(f"model is a name or an id, not {type(model).__name__}")
    if isinstance(model, int):
        if version is not None:
            raise ValueError("version goes with a name: an id is one version already")
        return model
    model_id, owner, name = _meant(conn, check_text("model", model, "faults"))
    if version is None:
        return model_id
    _, rows = select(
        conn,
        "SELECT m.model_id FROM corgipile.models AS m WHERE m.owner::text = %s AND m.name = %s AND m.version = %s",
        [owner, name, version],
    )
    if not rows:
        raise LookupError(f"there is no version {version} of model {model!r} that you may use")
    return rows[0][0]


def _meant(conn: psycopg.Connection[Any], model: str) -> tuple[int, str, str]:
    """Id, owner and name of the version that a name means."""
    functions = schema(conn)
    _, rows = select(
        conn,
        f"""WITH meant AS MATERIALIZED (SELECT {functions}.corgipile_export(%(name)s::text) AS document)
            SELECT c.model_id, c.owner::text, c.name
              FROM corgipile.current_models AS c, meant
             WHERE (c.name = %(name)s OR c.owner::text || '.' || c.name = %(name)s)
               AND {functions}.corgipile_export(c.model_id) = meant.document
             ORDER BY c.owner::text = pg_catalog.quote_ident(current_user) DESC, c.model_id""",
        {"name": model},
    )
    if not rows:
        raise LookupError(f"there is no model {model!r} that you may use")
    return rows[0][0], rows[0][1], rows[0][2]
