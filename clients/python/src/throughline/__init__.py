"""Durable sessions for AI agents: a client of Throughline's HTTP API."""

from .client import AsyncClient, Client, Entry, SessionInfo
from .errors import NotFound, StaleWriter, ThroughlineError

__all__ = [
    "AsyncClient",
    "Client",
    "Entry",
    "NotFound",
    "SessionInfo",
    "StaleWriter",
    "ThroughlineError",
]
