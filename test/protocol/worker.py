#!/usr/bin/env python3
"""A worker of the task protocol in plain Python, to copy from: it answers tasks of type `echo` with their own parameters.

    python3 worker.py --port 6379 [--type echo] [--prefix ''] [--lease-ms 30000] [--tasks 1] [--stall]

Nothing but the standard library. A Redis client would do the same with less code.
"""
import argparse
import json
import os
import socket
import sys
import time
from datetime import datetime, timezone

GROUP = "workers"
MESSAGE_BYTES_MAX = 64 * 1024


class Away(Exception):
    """Redis is there, and cannot do what it is asked yet."""


class Redis:
    """Just enough of the Redis protocol: a command is a list of texts, an answer is what Redis says."""

    def __init__(self, host, port):
        self.socket = socket.create_connection((host, port), timeout=30)
        self.file = self.socket.makefile("rb")

    def call(self, *words):
        parts = [b"*%d\r\n" % len(words)]
        for word in words:
            data = str(word).encode()
            parts.append(b"$%d\r\n%s\r\n" % (len(data), data))
        self.socket.sendall(b"".join(parts))
        answer = self._read()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self):
        self.file.close()
        self.socket.close()

    def _read(self):
        line = self.file.readline()
        if not line:
            raise ConnectionError("Redis is gone")
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest.decode()
        if kind == b"-":
            text = rest.decode()
            # Redis is still loading its file, or has lost its data: treat both like a restart.
            return (Away if text.startswith(("LOADING", "NOGROUP", "UNBLOCKED")) else RuntimeError)(text)
        if kind == b":":
            return int(rest)
        if kind == b"$":
            length = int(rest)
            return None if length < 0 else self.file.read(length + 2)[:-2].decode()
        if kind == b"*":
            length = int(rest)
            return None if length < 0 else [self._read() for _ in range(length)]
        raise RuntimeError("an answer of an unknown kind: %r" % line)


class Worker:
    def __init__(self, options):
        self.options = options
        self.redis = None
        self.id = "%s_%d_python" % (socket.gethostname(), os.getpid())
        # Tasks with a priority come first; both streams have the same group.
        tasks = "%sscraping:tasks:%s" % (options.prefix, options.type)
        self.streams = [tasks + ":priority", tasks]
        self.results = options.prefix + "scraping:results"
        self.errors = options.prefix + "scrapers:errors"
        self.done = 0

    def run(self):
        """Redis may restart at any moment. What was claimed and not answered is taken over after a lease, by us or another."""
        wait = 0.1
        while not self.is_done():
            try:
                self.connect()
                wait = 0.1
                self.work()
            except (OSError, Away) as error:
                print("Redis is away (%s): waiting for it" % error, file=sys.stderr, flush=True)
                time.sleep(wait)
                wait = min(2 * wait, 5)

    def is_done(self):
        return 0 < self.options.tasks <= self.done

    def connect(self):
        if self.redis is not None:
            self.redis.close()
        self.redis = Redis(self.options.host, self.options.port)
        for stream in self.streams:
            try:
                self.redis.call("XGROUP", "CREATE", stream, GROUP, "0", "MKSTREAM")
            except RuntimeError as error:
                if "BUSYGROUP" not in str(error):
                    raise

    def work(self):
        while not self.is_done():
            for stream, entry_id, fields in self.taken_over() or self.new():
                self.handle(stream, entry_id, fields)

    def new(self):
        words = ["COUNT", 1, "BLOCK", 500, "STREAMS"] + self.streams + [">"] * len(self.streams)
        answer = self.redis.call("XREADGROUP", "GROUP", GROUP, self.id, *words)
        return [(stream, entry[0], entry[1]) for stream, entries in answer or [] for entry in entries]

    def taken_over(self):
        """What another worker claimed and then said nothing about for a whole lease."""
        found = []
        for stream in self.streams:
            answer = self.redis.call(
                "XAUTOCLAIM", stream, GROUP, self.id, self.options.lease_ms, "0-0", "COUNT", 1
            )
            found += [(stream, entry[0], entry[1]) for entry in answer[1] if entry[1]]
        return found

    def handle(self, stream, entry_id, fields):
        print("claimed %s" % entry_id, flush=True)
        if self.options.stall:
            time.sleep(3600)
        started = time.monotonic()
        try:
            task = self.read(dict(zip(fields[::2], fields[1::2])))
            message, target = self.result_of(task, time.monotonic() - started), self.results
        except ValueError as error:
            message, target = self.refusal_of(stream, entry_id, error), self.errors
        # Send the result and the acknowledgement together: there is never one without the other.
        self.redis.call("MULTI")
        self.redis.call("XADD", target, "*", "message", json.dumps(message))
        self.redis.call("XACK", stream, GROUP, entry_id)
        self.redis.call("EXEC")
        self.done += 1

    def read(self, fields):
        text = fields.get("message", "")
        if not text or len(text.encode()) > MESSAGE_BYTES_MAX:
            raise ValueError("no message, or too long a one")
        task = json.loads(text)
        if not isinstance(task, dict) or task.get("version", 1) != 1:
            raise ValueError("another version than 1")
        if task.get("scraper_type") != self.options.type or "task_id" not in task:
            raise ValueError("no task of this type")
        if not isinstance(task.get("params", {}), dict):
            raise ValueError("params that are none")
        return task

    def result_of(self, task, seconds):
        # A proxy may have a password, so it is in no result.
        item = {"echo": {name: value for name, value in task.get("params", {}).items() if name != "proxy"}}
        return {
            "version": 1,
            "task_id": task["task_id"],
            "status": "success",
            "scraper_type": task["scraper_type"],
            "attempt": task.get("retry_count", 0) + 1,
            "execution_time": seconds,
            "jobs_found": 1,
            "items": [item],
            "item_keys": [task["task_id"]],
            "metadata": {"worker_id": self.id},
            "completed_at": now(),
            "error": None,
        }

    def refusal_of(self, stream, entry_id, error):
        return {
            "version": 1,
            "error_code": "E_MESSAGE_FOREIGN",
            "error_message": str(error),
            "occurred_at": now(),
            "worker_id": self.id,
            "stream": stream,
            "entry_id": entry_id,
        }


def now():
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=6379)
    parser.add_argument("--type", default="echo")
    parser.add_argument("--prefix", default="")
    parser.add_argument("--lease-ms", type=int, default=30_000)
    parser.add_argument("--tasks", type=int, default=0, help="end after so many; 0: never")
    parser.add_argument("--stall", action="store_true", help="claim a task and do nothing, to be killed")
    Worker(parser.parse_args()).run()
