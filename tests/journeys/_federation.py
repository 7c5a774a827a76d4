"""Starts a federation of processes and runs jobs in it, some at the same time.

It is a process of its own: FLARE leaves threads behind and prints as it likes. Reads
jobs as lines of JSON, writes how they ended as lines of JSON.
"""

import json
import logging
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from skppdnmf import PrivateDistributedNMF
from skppdnmf.flare import NMFRecipe
from skppdnmf.flare.follow import follow
from skppdnmf.flare.submit import local_env, quiet

AT_A_TIME = 3
LOCK = threading.Lock()


def main(workspace, rerouted, port, *names):
    """Start the sites, run the jobs of the standard input, stop the sites."""
    logging.disable(logging.CRITICAL)
    env = local_env(names, Path(workspace))
    with quiet():
        env.provision()
        places = {one.name: one for one in env.participants()}
        reroute(places[rerouted] / "startup" / "fed_client.json", port)
        try:
            env.start()
            say({"ready": {name: str(place) for name, place in places.items()}})
            with ThreadPoolExecutor(AT_A_TIME) as pool:
                for line in sys.stdin:
                    pool.submit(run, env, Path(workspace).parent / "jobs", line)
        finally:
            env.stop(clean_up=False)


def reroute(file, port):
    """Have a site dial another port, where a test listens."""
    config = json.loads(file.read_text())
    config["servers"][0]["service"]["target"] = f"localhost:{port}"
    file.write_text(json.dumps(config))


def run(env, folder, line):
    """Run one job, and say how it ended."""
    order = json.loads(line)
    name = order["options"]["dataset"]
    try:
        model = PrivateDistributedNMF(**order["parameters"])
        with LOCK:
            recipe = NMFRecipe(model, name=name, **order["options"])
            recipe.export(str(folder))
            session = env.session()
        try:
            job = session.submit_job(str(folder / name))
            say({"job": name, **follow(session, job, lambda _: None)})
        finally:
            session.close()
    except Exception as error:
        say({"job": name, "ended": f"the driver: {error!r}"})


def say(what):
    """Write a line of JSON."""
    with LOCK:
        sys.__stdout__.write(json.dumps(what) + "\n")
        sys.__stdout__.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
