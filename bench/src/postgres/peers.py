"""Measures other session stores in PostgreSQL, on requests read line by line.

Reads requests as lines of JSON and answers each with its rate: how many messages per
second were stored. Everything is done as the libraries' manuals describe,
with as many connections as there are writers.
"""

import asyncio
import json
import sys
import time
from importlib.metadata import version
from urllib.parse import unquote, urlsplit

from agents.extensions.memory.sqlalchemy_session import SQLAlchemySession
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool
from sqlalchemy.ext.asyncio import create_async_engine

URL = urlsplit(sys.argv[2])
# For a Unix socket, the host is its folder.
HOST, DATABASE = unquote(URL.netloc.split("@")[-1]), URL.path.lstrip("/")
USER = URL.username
HISTORY = 100


async def in_turns(writers, seconds, write):
    """Runs tasks that write repeatedly; returns the writes per second."""
    start = time.perf_counter()

    async def one(writer):
        done = 0
        while done == 0 or time.perf_counter() - start < seconds:
            await write(writer)
            done += 1
        return done

    done = sum(await asyncio.gather(*map(one, writers)))
    return done / (time.perf_counter() - start)


class Sessions:
    """SQLAlchemySession: tasks that each append to their own session."""

    def __init__(self, writers):
        self.engine = create_async_engine(
            f"postgresql+asyncpg://{USER}@/{DATABASE}?host={HOST}",
            pool_size=writers,
            max_overflow=0,
        )
        self.sessions = [
            SQLAlchemySession(f"writer-{n}-of-{writers}", engine=self.engine, create_tables=n == 0)
            for n in range(writers)
        ]
        self.ready = False

    async def rate(self, text, seconds):
        if not self.ready:
            # The first call creates the tables.
            await self.sessions[0].add_items([{"role": "user", "content": text}])
            self.ready = True

        async def write(session):
            await session.add_items([{"role": "user", "content": text}])

        return await in_turns(self.sessions, seconds, write)


class Savers:
    """AsyncPostgresSaver: tasks that each store checkpoints of their own thread."""

    def __init__(self, writers):
        self.writers = writers
        self.slices = 0
        self.pool = AsyncConnectionPool(
            f"host={HOST} user={USER} dbname={DATABASE}",
            min_size=writers,
            max_size=writers,
            open=False,
            kwargs={"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row},
        )
        self.savers = None

    async def rate(self, text, seconds):
        if self.savers is None:
            await self.pool.open(wait=True)
            await AsyncPostgresSaver(self.pool).setup()
            # Each saver runs one statement at a time.
            self.savers = [AsyncPostgresSaver(self.pool) for _ in range(self.writers)]
        self.slices += 1
        threads = []
        for n, saver in enumerate(self.savers):
            thread = f"{self.writers}-{n}-{self.slices}"
            messages = [{"role": "user", "content": text} for _ in range(HISTORY)]
            config = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
            threads.append({"saver": saver, "messages": messages, "config": config, "step": 0})

        async def write(thread):
            thread["step"] += 1
            # Adds a message and drops the oldest, so that the length stays the same.
            thread["messages"] = [*thread["messages"][1:], {"role": "user", "content": text}]
            checkpoint = empty_checkpoint()
            versions = {"messages": str(thread["step"])}
            checkpoint["channel_values"] = {"messages": thread["messages"]}
            checkpoint["channel_versions"] = versions
            metadata = {"source": "loop", "step": thread["step"]}
            thread["config"] = await thread["saver"].aput(
                thread["config"], checkpoint, metadata, versions
            )

        rate = await in_turns(threads, seconds, write)
        # Not timed; a hundred copies of a long list would fill the disk.
        for thread in threads:
            await self.savers[0].adelete_thread(thread["config"]["configurable"]["thread_id"])
        return rate


def answer(value):
    print(json.dumps(value), flush=True)


async def main():
    kinds = {"session": Sessions, "saver": Savers}
    made = {}
    answer(
        {
            "about": f"openai-agents {version('openai-agents')} (SQLAlchemySession over asyncpg "
            f"{version('asyncpg')}) and langgraph-checkpoint-postgres "
            f"{version('langgraph-checkpoint-postgres')} (AsyncPostgresSaver over psycopg "
            f"{version('psycopg')}, threads of {HISTORY} messages), on Python "
            f"{sys.version.split()[0]}, in one process, with their default settings."
        }
    )
    for line in sys.stdin:
        request = json.loads(line)
        key = (request["work"], request["writers"])
        if key not in made:
            made[key] = kinds[request["work"]](request["writers"])
        answer({"rate": await made[key].rate(request["text"], request["seconds"])})


asyncio.run(main())
