"""Measures other session stores, on requests read line by line.

Reads requests as lines of JSON and answers each with its rate: how many messages per
second were stored. Everything is done as the libraries' manuals describe.
"""

import asyncio
import json
import sqlite3
import sys
import time
from functools import cache
from importlib.metadata import version
from pathlib import Path

from agents import SQLiteSession
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.sqlite import SqliteSaver

FOLDER = Path(sys.argv[1])
SYNCHRONOUS = {0: "OFF", 1: "NORMAL", 2: "FULL", 3: "EXTRA"}


def settings(connection):
    """Describes the durability settings of a connection."""
    mode = connection.execute("PRAGMA journal_mode").fetchone()[0].upper()
    level = connection.execute("PRAGMA synchronous").fetchone()[0]
    return f"journal {mode}, synchronous {SYNCHRONOUS[level]}"


class Sessions:
    """SQLiteSession: tasks that each append to their own session."""

    def __init__(self, writers):
        path = FOLDER / f"sessions-{writers}.db"
        self.sessions = [SQLiteSession(f"writer-{n}", path) for n in range(writers)]

    def settings(self):
        with self.sessions[0]._locked_connection() as connection:
            return settings(connection)

    async def rate(self, text, seconds):
        start = time.perf_counter()

        async def write(session):
            done = 0
            while time.perf_counter() - start < seconds:
                await session.add_items([{"role": "user", "content": text}])
                done += 1
            return done

        done = sum(await asyncio.gather(*map(write, self.sessions)))
        return done / (time.perf_counter() - start)


class Saver:
    """SqliteSaver: stores a checkpoint of the whole list after each message."""

    def __init__(self, messages):
        self.messages = messages
        path = FOLDER / f"saver-{messages}.db"
        self.connection = sqlite3.connect(path, check_same_thread=False)
        self.saver = SqliteSaver(self.connection)
        self.saver.setup()
        self.slices = 0

    def settings(self):
        return settings(self.connection)

    def rate(self, text, seconds):
        self.slices += 1
        config = {"configurable": {"thread_id": str(self.slices), "checkpoint_ns": ""}}
        messages = [{"role": "user", "content": text} for _ in range(self.messages)]
        start = time.perf_counter()
        done = 0
        while done == 0 or time.perf_counter() - start < seconds:
            messages.append({"role": "user", "content": text})
            checkpoint = empty_checkpoint()
            checkpoint["channel_values"] = {"messages": messages}
            metadata = {"source": "loop", "step": done}
            config = self.saver.put(config, checkpoint, metadata, {})
            done += 1
        rate = done / (time.perf_counter() - start)
        # Not timed; a hundred copies of a long list would fill the disk.
        self.saver.delete_thread(str(self.slices))
        return rate


def answer(value):
    print(json.dumps(value), flush=True)


async def main():
    sessions, savers = cache(Sessions), cache(Saver)
    answer(
        {
            "about": f"openai-agents {version('openai-agents')} (SQLiteSession: "
            f"{Sessions(1).settings()}) and langgraph-checkpoint-sqlite "
            f"{version('langgraph-checkpoint-sqlite')} (SqliteSaver: {Saver(1).settings()}), "
            f"on Python {sys.version.split()[0]}, with their default settings."
        }
    )
    for line in sys.stdin:
        request = json.loads(line)
        text, seconds = request["text"], request["seconds"]
        if request["work"] == "session":
            answer({"rate": await sessions(request["writers"]).rate(text, seconds)})
        else:
            answer({"rate": savers(request["messages"]).rate(text, seconds)})


asyncio.run(main())
