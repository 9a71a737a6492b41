"""Several machines: one server draws for all, the others read, prepare and serve the jobs of their machines."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from corgipile.dataset import check_number

_NODES = 1024

# role, address, node, nodes, certificate or trusted ones, key, name in the certificate, file of the token
Told = tuple[str, str, int, int, str, str, str | None, str]


@dataclass(frozen=True)
class Leader:
    """The server that draws for all machines, and serves the jobs of its own.

    Servers communicate over TCP with TLS and authenticate with a token, which is not sent: both sides prove that they
    know it.

    Attributes:
        listen: the address for followers, such as "10.0.0.1:7400".
        node: number of its machine, below `nodes`.
        nodes: number of machines, including later ones.
        certificate: a PEM file for the name or address by which followers reach it, not that of an authority.
        key: the key of the certificate, a PEM file that only its owner may read.
        token: a file with a secret of at least 16 characters, the same on all machines, that only its owner may read.
    """

    listen: str
    node: int
    nodes: int
    certificate: str | os.PathLike[str]
    key: str | os.PathLike[str]
    token: str | os.PathLike[str]


@dataclass(frozen=True)
class Follower:
    """A server that asks a leader what its jobs draw.

    Attributes:
        leader: name or address of the leader, with its port.
        node: number of its machine, different from those of all other servers.
        nodes: the same as the leader's.
        trusts: a PEM file with the certificate of the leader, or of the authority that signed it.
        token: a file with the leader's secret, that only its owner may read.
        name: the name in the leader's certificate, if it differs from `leader`.
    """

    leader: str
    node: int
    nodes: int
    trusts: str | os.PathLike[str]
    token: str | os.PathLike[str]
    name: str | None = None


def told(cluster: Leader | Follower | None) -> Told | None:
    """What the native module gets."""
    if cluster is None:
        return None
    if not isinstance(cluster, Leader | Follower):
        raise TypeError(f"cluster: {type(cluster).__name__} is neither a joader.Leader nor a joader.Follower")
    check_number("nodes", cluster.nodes, 1, _NODES)
    check_number("node", cluster.node, 0, cluster.nodes - 1)
    if isinstance(cluster, Leader):
        files: Sequence[str] = (os.fspath(cluster.certificate), os.fspath(cluster.key))
        return "leader", cluster.listen, cluster.node, cluster.nodes, *files, None, os.fspath(cluster.token)
    trusts = os.fspath(cluster.trusts)
    return "follower", cluster.leader, cluster.node, cluster.nodes, trusts, "", cluster.name, os.fspath(cluster.token)
