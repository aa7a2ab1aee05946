"""Training on a Dask cluster whose hosts are network namespaces: is the model the same?

    sudo .venv/bin/python -m benchmarks.dask_network [DELAY LOSS]

A scheduler, two workers and the client are in namespaces of their own, joined by this program: it
passes every packet on after DELAY seconds (0.02), but for a share LOSS (0.01) of them. The second
run cuts a worker off in the middle of the fit; the third has a client that reaches no worker, only
the scheduler. Needs root, iproute2 and /dev/net/tun.
"""

import collections
import contextlib
import fcntl
import hashlib
import ipaddress
import os
import random
import select
import struct
import subprocess
import sys
import threading
import time

HOSTS = {"scheduler": "10.71.0.1", "one": "10.71.0.2", "two": "10.71.0.3", "client": "10.71.0.4"}
# From linux/if_tun.h.
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
N_ROWS, N_TREES, TIMEOUT = 100_000, 50, 10.0


def run(*words):
    subprocess.run([str(word) for word in words], check=True)


def inside(host, *words):
    """A command in the namespace of a host."""
    return ["ip", "netns", "exec", f"sglb-{host}", *map(str, words)]


def tunnel(space):
    """Make an interface in a namespace; return the file that its packets come from and go to."""
    file = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(file, TUNSETIFF, struct.pack("16sH", b"link0", IFF_TUN | IFF_NO_PI))
    run("ip", "link", "set", "link0", "netns", space)
    return file


class Wire(threading.Thread):
    """Passes packets between hosts, late, and not all of them."""

    def __init__(self, files, delay, loss):
        super().__init__(daemon=True)
        self.files = {ipaddress.ip_address(HOSTS[host]).packed: file for host, file in files}
        self.delay, self.loss, self.chance = delay, loss, random.Random(0)
        self.cut, self.ended, self.n_passed, self.n_lost = set(), False, 0, 0

    def run(self):
        waiting = collections.deque()
        while not self.ended:
            rest = waiting[0][0] - time.monotonic() if waiting else 0.1
            ready = select.select(list(self.files.values()), [], [], max(rest, 0.0))[0]
            for file in ready:
                waiting.append((time.monotonic() + self.delay, os.read(file, 65536)))
            while waiting and waiting[0][0] <= time.monotonic():
                self.forward(waiting.popleft()[1])

    def forward(self, packet):
        ends = {packet[12:16], packet[16:20]}
        if not ends <= self.files.keys():
            return  # no packet of ours: the system looks for routers
        if self.chance.random() < self.loss or any(pair <= ends for pair in self.cut):
            self.n_lost += 1
            return
        self.n_passed += 1
        with contextlib.suppress(BlockingIOError):
            os.write(self.files[packet[16:20]], packet)

    def separate(self, *hosts):
        """Lose everything between two hosts, or of one."""
        self.cut.add(frozenset(ipaddress.ip_address(HOSTS[host]).packed for host in hosts))


@contextlib.contextmanager
def network(delay, loss):
    """Namespaces, each with a link to the wire."""
    with contextlib.ExitStack() as stack:
        files = []
        for host, address in HOSTS.items():
            run("ip", "netns", "add", f"sglb-{host}")
            stack.callback(run, "ip", "netns", "del", f"sglb-{host}")
            files.append((host, tunnel(f"sglb-{host}")))
            stack.callback(os.close, files[-1][1])
            run(*inside(host, "ip", "address", "add", f"{address}/24", "dev", "link0"))
            run(*inside(host, "ip", "link", "set", "lo", "up"))
            run(*inside(host, "ip", "link", "set", "link0", "mtu", 9000, "up"))
        wire = Wire(files, delay, loss)
        wire.start()
        yield wire
        wire.ended = True
        wire.join()


@contextlib.contextmanager
def cluster():
    """A scheduler and two workers, by the commands of Dask."""
    python, quiet = [sys.executable, "-m"], {"stderr": subprocess.DEVNULL}
    scheduler = f"tcp://{HOSTS['scheduler']}:8786"
    options = ("--no-dashboard", "--host", HOSTS["scheduler"])
    commands = [inside("scheduler", *python, "distributed.cli.dask_scheduler", *options)]
    commands += [
        inside(
            host, *python, "distributed.cli.dask_worker", scheduler, "--nthreads", 1,
            "--host", HOSTS[host], "--no-dashboard", "--local-directory", f"/tmp/sglb-{host}",
        )
        for host in ("one", "two")
    ]  # fmt: skip
    processes = []
    try:
        for command in commands:
            processes.append(subprocess.Popen(command, **quiet))
            time.sleep(2)  # the scheduler is first
        yield scheduler
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait(60)


def digest(model):
    from sglb import archive

    return hashlib.sha256(archive.dumps(model._fitted())).hexdigest()


def train(scheduler, cut):
    """Train here and on the cluster; print both digests and how long the cluster took."""
    import numpy as np
    from dask import array
    from dask.distributed import Client

    import sglb.dask
    from sglb import BaseCallback

    class Cut(BaseCallback):
        def step(self, info):
            if info.step == N_TREES // 2:
                print("cut", flush=True)
                input()

    def rows(seed):
        return np.random.default_rng(seed).normal(size=(N_ROWS // 4, 8))

    X = np.concatenate([rows(seed) for seed in range(4)])
    y = X[:, 0] * X[:, 1] + X[:, 2]
    parameters = {"n_estimators": N_TREES, "random_state": 0}
    alone = sglb.SGLBRegressor(**parameters).fit(X, y)
    with Client(scheduler, timeout=60) as client:
        client.wait_for_workers(2, timeout=60)
        blocks = array.map_blocks(
            lambda block_info: rows(block_info[None]["chunk-location"][0]),
            chunks=((N_ROWS // 4,) * 4, (8,)), dtype=float,
        )  # fmt: skip
        start = time.perf_counter()
        model = sglb.dask.SGLBRegressor(**parameters)
        model.fit(blocks, y, timeout=TIMEOUT, callbacks=[Cut()] if cut else [])
        print("seconds", f"{time.perf_counter() - start:.1f}")
    print("alone  ", digest(alone))
    print("cluster", digest(model), flush=True)


def run_client(scheduler, wire, *, cut):
    """Train in the client's namespace; whether both models are the same."""
    words = inside("client", sys.executable, __file__, "train", scheduler, int(cut))
    client = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    said = {}
    for line in client.stdout:
        print(" ", line.strip(), flush=True)
        if line.strip() == "cut":
            wire.separate("two")
            client.stdin.write("\n")
            client.stdin.flush()
        else:
            name, value = line.split()
            said[name] = value
    print(f"  {wire.n_passed} packets, {wire.n_lost} lost", flush=True)
    return client.wait() == 0 and said["alone"] == said["cluster"]


def main(delay="0.02", loss="0.01"):
    same = []
    for name in ("slow and lossy", "a worker is cut off", "workers out of reach"):
        print(f"{name}: delay {delay} s, loss {loss}", flush=True)
        with network(float(delay), float(loss)) as wire, cluster() as scheduler:
            if name == "workers out of reach":
                wire.separate("client", "one")
                wire.separate("client", "two")
            same.append(run_client(scheduler, wire, cut=name == "a worker is cut off"))
    return 0 if all(same) else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["train"]:
        train(sys.argv[2], bool(int(sys.argv[3])))
    else:
        sys.exit(main(*sys.argv[1:]))
