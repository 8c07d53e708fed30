# SPDX-License-Identifier: MIT
"""The cache server with each of its stores, and Redis, give the same answers; latencies are what they say.
OCAML_PREFIX, or the default compiler."""

from __future__ import annotations

import math
import os
import random
import shutil
import signal
import socket
import subprocess
import time
from collections import OrderedDict
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from runner.compiler import BUILT, ROOT, Compiler
from runner.suites.outheap import programs
from runner.suites.outheap.programs import Builder
from runner.suites.outheap.runtimes import Runtimes
from runner.suites.outheap.suite import SUITE

pytestmark = pytest.mark.xdist_group("cache")  # one process builds the server

STORES = ("owned", "hashtbl", "bigarray", "lmdb", "redis")
NO_TABLE = "none"
BOUND = ("owned", "hashtbl", "bigarray")  # which take out exactly what was not used for longest
SEED = int(os.environ.get("SEED", "1"))
UNBOUND = 1_000_000


def needed(*words: str) -> bool:
    return subprocess.run([ROOT / "tools" / "need", *words], stdout=subprocess.DEVNULL).returncode == 0


@pytest.fixture(scope="session")
def program() -> Path:
    if not (prefix := os.environ.get("OCAML_PREFIX")):
        done = subprocess.run([ROOT / "tools" / "toolchain", "--default"], capture_output=True, text=True)
        if done.returncode != 0:
            pytest.skip("no OCaml compiler")
        prefix = done.stdout.strip()
    compiler = Compiler(Path(prefix))
    folder = BUILT / "outheap" / compiler.version
    builder = Builder(compiler, Runtimes(compiler, Path(prefix), folder / "runtimes"), folder)
    return Path(builder.program("cache", SUITE.implementations["stock"]).command[0])


class Client:
    """A connection; replies are bytes, int, None, or an Exception for an error."""

    def __init__(self, path: Path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        self.socket.connect(str(path))
        self.file = self.socket.makefile("rb")

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def reply(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise EOFError(line)
        kind, text = line[:1], line[1:-2]
        if kind == b"+":
            return text
        if kind == b"-":
            return ValueError(text.decode())
        if kind == b":":
            return int(text)
        assert kind == b"$", line
        if text == b"-1":
            return None
        body = self.file.read(int(text) + 2)
        assert body.endswith(b"\r\n")
        return body[:-2]

    def ask(self, *words: bytes):
        self.send(request(*words))
        return self.reply()

    def close(self) -> None:
        self.file.close()
        self.socket.close()


def request(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


@contextmanager
def server(program: Path, store: str, folder: Path, most: int = UNBOUND):
    """The path of its socket, while it runs; it must end well."""
    path = folder / "socket"
    path.unlink(missing_ok=True)
    if store == "redis":
        if not needed("redis-server"):
            pytest.skip("redis-server is missing (Debian: redis-server)")
        command = ["redis-server", "--port", "0", "--unixsocket", path, "--save", "", "--dir", folder]
    else:
        if store == "lmdb" and not needed("-h", "lmdb.h"):
            pytest.skip("lmdb.h is missing (Debian: liblmdb-dev)")
        command = [program, "serve", store, str(most), path, folder]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        while True:
            try:
                Client(path).close()
                break
            except OSError:
                assert child.poll() is None, child.stderr.read()
                time.sleep(0.01)
        yield path
        child.send_signal(signal.SIGTERM)
        assert child.wait(60) == 0, child.stderr.read()
        if store != "redis":
            assert child.stderr.read() == ""
    finally:
        child.kill()
        child.communicate()


class Model:
    """What a cache should answer."""

    def __init__(self, most: int):
        self.most, self.all = most, OrderedDict()

    def answer(self, command: bytes, *words: bytes):
        if command == b"GET":
            if words[0] in self.all:
                self.all.move_to_end(words[0])
            return self.all.get(words[0])
        if command == b"SET":
            self.all[words[0]] = words[1]
            self.all.move_to_end(words[0])
            if len(self.all) > self.most:
                self.all.popitem(last=False)
            return b"OK"
        return len(self.all) if command == b"DBSIZE" else b"PONG"


def random_command(rng: random.Random, keys: int) -> tuple[bytes, ...]:
    n, kind = rng.randrange(keys), rng.randrange(100)
    key = b"key:%d" % n + (b"\r\n\0\xff" * (n % 7)) + b"k" * (n % 3 * 100)
    if kind < 55:
        return b"SET", key, rng.randbytes(rng.choice((0, 1, 7, 8, 30, 31, 32, 200, 495, 496, 600, 1500, 5000)))
    return (b"GET", key) if kind < 95 else (b"DBSIZE",) if kind < 98 else (b"PING",)


def compare(path: Path, most: int, keys: int, seed: int, steps: int) -> None:
    rng, model, client = random.Random(seed), Model(most), Client(path)
    while steps > 0:
        commands = [random_command(rng, keys) for _ in range(rng.choice((1, 1, 2, 10, 100)))]
        steps -= len(commands)
        data = b"".join(request(*c) for c in commands)
        cuts = sorted(rng.randrange(len(data)) for _ in range(rng.choice((0, 0, 1, 3))))
        for begin, end in zip([0, *cuts], [*cuts, len(data)]):
            client.send(data[begin:end])
        for command in commands:
            wanted, found = model.answer(*command), client.reply()
            assert found == wanted, (seed, command)
    client.close()


@pytest.mark.parametrize("keys", (20, 3000))
@pytest.mark.parametrize("store", STORES)
def test_answers(store, keys, program, tmp_path):
    with server(program, store, tmp_path) as path:
        compare(path, UNBOUND, keys, SEED, 3000)


@pytest.mark.parametrize("most", (1, 50))
@pytest.mark.parametrize("store", BOUND)
def test_answers_with_a_bound(store, most, program, tmp_path):
    with server(program, store, tmp_path, most) as path:
        compare(path, most, 100, SEED, 5000)


def test_many_entries_that_are_replaced(program, tmp_path):
    """Pieces of memory of all sizes come and go."""
    for store in STORES[:4]:
        with server(program, store, tmp_path) as path:
            client = Client(path)
            for turn in range(5):
                commands = [(b"SET", b"%d" % k, b"%d," % k * ((k * 31 + turn * 7) % 300)) for k in range(4000)]
                client.send(b"".join(request(*c) for c in commands))
                assert all(client.reply() == b"OK" for _ in commands)
            client.send(b"".join(request(b"GET", b"%d" % k) for k in range(4000)))
            assert [client.reply() for _ in range(4000)] == [c[2] for c in commands]
            client.close()


def test_requests_at_once_and_clients_that_end(program, tmp_path):
    with server(program, "owned", tmp_path) as path:
        for data in (b"*", b"*2\r\n$3\r\nGE", b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1000000\r\n" + b"x" * 70_000):
            client = Client(path)
            client.send(data)
            client.close()
        client = Client(path)
        assert client.ask(b"SET", b"long", b"x" * 1_000_000) == b"OK" and len(client.ask(b"GET", b"long")) == 1_000_000
        client.send(request(b"GET", b"no") + request(b"NOTHING", b"x") + request(b"get", b"long"))
        assert client.reply() is None and isinstance(client.reply(), ValueError) and len(client.reply()) == 1_000_000


def test_a_library_that_comes_later(tmp_path, monkeypatch):
    """All is compiled again, with its header; once."""
    compiled = []

    def run_tool(command, folder):
        compiled.append("-c" in command)
        if "-o" in command:
            Path(command[command.index("-o") + 1]).touch()

    monkeypatch.setattr(programs, "run_tool", run_tool)
    compiler = SimpleNamespace(cc="cc", ocamlopt="ocamlopt", where=tmp_path, ocaml5=True, in_order=sorted)
    runtimes = SimpleNamespace(link_flags=lambda _: [], digest=lambda _: b"", environment=lambda _: {})
    found = []
    for links in ([], [], ["-cclib", "-llmdb"], ["-cclib", "-llmdb"]):
        monkeypatch.setattr(Builder, "_lmdb", lambda *_, links=links: links)
        Builder(compiler, runtimes, tmp_path).program("cache", SUITE.implementations["stock"])
        found.append(any(compiled))
        compiled.clear()
    assert found == [True, False, True, False]


SHARES = {"50 %": 0.5, "99 %": 0.99, "99.9 %": 0.999, "99.99 %": 0.9999, "longest": 1.0}


def of_histogram(line: str) -> dict[str, int]:
    return {name: int(n) for name, n in (part.split("=") for part in line.split(","))}


def test_histogram(program):
    """What it says is what came, or less than 1/32 more."""
    rng = random.Random(SEED)
    samples = [
        [],
        [0],
        [7],
        list(range(70)),
        [(1 << n) + d for n in range(6, 62) for d in (-1, 0, 1)],
        [(1 << 62) - 1],
        [rng.randrange(1000) for _ in range(999)] + [1 << 40],
        *([int(rng.lognormvariate(9, s)) for _ in range(n)] for s, n in ((0.1, 5000), (2, 20_000), (6, 999))),
    ]
    for numbers in samples:
        text = "".join(f"{n}\n" for n in rng.sample(numbers, len(numbers)))
        done = subprocess.run([program, "histogram"], input=text, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        said, numbers = of_histogram(done.stdout.strip()), sorted(numbers)
        assert said["count"] == len(numbers) and set(said) == {"count", *SHARES}
        for name, share in SHARES.items():
            right = numbers[max(1, math.ceil(share * len(numbers))) - 1] if numbers else 0
            assert right <= said[name] <= right * 33 / 32 and (right > 63 or said[name] == right), (name, right, said)
        assert said["longest"] == (numbers[-1] if numbers else 0)


def test_times_in_the_server(program, tmp_path):
    """Each request counts once."""
    with server(program, "owned", tmp_path) as path:
        client = Client(path)
        assert client.ask(b"CONFIG", b"RESETSTAT") == b"OK"
        for n in range(100):
            client.ask(b"SET", b"%d" % n, b"x")
        lines = client.ask(b"INFO", b"latency").decode().splitlines()
        times = {line.split(":")[0]: of_histogram(line.split(":")[1]) for line in lines}
        assert times["service"]["count"] == times["handled"]["count"] == 101  # with RESETSTAT's own
        assert 0 < times["handled"]["longest"] <= times["service"]["longest"]


@pytest.mark.timing  # the clock decides
def test_a_pause_counts_for_all_that_it_holds_up(program, tmp_path):
    """The client sends when a request is due, and counts from then; the server, from when it reads it."""
    with server(program, "owned", tmp_path) as path:
        pid = next(int(p.name) for p in Path("/proc").glob("[0-9]*") if path.as_posix() in command_of(p))
        command = [program, "rate", path, "1000", "2000", "1.2"]
        client = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        answers = Client(path)
        while answers.ask(b"DBSIZE") < 1000:
            time.sleep(0.01)
        os.kill(pid, signal.SIGSTOP)
        time.sleep(1)
        os.kill(pid, signal.SIGCONT)
        said = client.communicate(timeout=600)[0]
    figures = {line.split("\t")[0]: float(line.split("\t")[1]) for line in said.splitlines()}
    # Of 2,400 requests at least 1,600 were due while the server stood still; 16 connections that wait would have 16.
    assert figures["latency, 50 %"] >= 200 and figures["latency, longest"] >= 900
    assert figures["handled, 99 %"] < figures["latency, 50 %"]


def command_of(process: Path) -> str:
    try:
        return (process / "cmdline").read_text()
    except OSError:
        return ""


def test_a_server_without_a_table(program, tmp_path):
    with server(program, NO_TABLE, tmp_path) as path:
        client = Client(path)
        assert client.ask(b"SET", b"key:000000000120", b"x") == b"OK"
        assert client.ask(b"GET", b"key:000000000120").startswith(b"120:")
        assert client.ask(b"GET", b"key:000000000000").startswith(b"0:")
        assert client.ask(b"DBSIZE") == 0


@pytest.mark.parametrize("store", (*STORES, NO_TABLE))
def test_measure(store, program):
    """The measurement as such, small."""
    if not needed("redis-benchmark"):
        pytest.skip("redis-benchmark is missing (Debian: redis-tools)")
    if store == "redis" and not shutil.which("redis-server"):
        pytest.skip("redis-server is missing (Debian: redis-server)")
    if store == "lmdb" and not needed("-h", "lmdb.h"):
        pytest.skip("lmdb.h is missing (Debian: liblmdb-dev)")
    environment = {**os.environ, "BENCH_LINEAR": "linear" if store == "owned" else store}
    command = [program, "measure", "3000", "4000", "5000", "1"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    figures = {line.split("\t")[0]: float(line.split("\t")[1]) for line in done.stdout.splitlines()}
    assert {"SET, 256 at once", "GET, 16 at once", "latency, 99.9 %", "peak resident"} <= set(figures)
    may_be_zero = ("processor time, each", "server and client apart")
    assert all(value > 0 for name, value in figures.items() if name not in may_be_zero)
    assert ("service, 99.9 %" in figures) == (store != "redis")
    assert figures["latency, 50 %"] <= figures["latency, 99.9 %"] <= figures["latency, longest"]
