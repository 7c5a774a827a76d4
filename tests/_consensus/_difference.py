"""Both sides of the exchange of differences, and the oracle of what they find."""

from collections import deque

import numpy as np
from _lattice_keys import lattice_cipher
from _paillier_keys import cipher

from skppdnmf.exchange import (
    REQUEST,
    DifferenceExchange,
    MaskStream,
    PlainCipher,
    SimulatedCipher,
)

UNIT = 2.0**-12  # a mask of 12 bits counts in these units


def make_cipher(kind, number, key_size=256):
    if kind == "paillier":
        return cipher(key_size, number=number)
    if kind == "bfv":
        return lattice_cipher(number)
    return PlainCipher() if kind == "plain" else SimulatedCipher(key_size)


def make_streams(n_neighbours, *seed):
    return MaskStream.from_seed(np.random.SeedSequence(seed)).spawn(n_neighbours)


def make_sides(network, n_values, kind="simulated", seed=0, key_size=256, **options):
    """The exchanges of all agents of a graph."""
    options = {"n_max": 1000.0, "masking": "entrywise", "value_bits": 12, **options}
    if kind == "plain":
        options["n_max"] = None
    return [
        DifferenceExchange(
            make_cipher(kind, i, key_size),
            int(degree),
            n_values=n_values,
            key_size=key_size,
            streams=make_streams(int(degree), seed, i),
            name=f"agent {i}",
            **options,
        )
        for i, degree in enumerate(network.degrees)
    ]


def run_round(network, sides, values, active=True):
    """One round; return the messages as (sender, receiver, message)."""
    place = [{int(j): k for k, j in enumerate(row)} for row in network.neighbours]
    post = deque()
    for i, side in enumerate(sides):
        requests = side.begin(np.asarray(values[i], dtype=float), active)
        post += [(i, j, requests[place[i][j]]) for j in place[i]]
    sent = []
    while post:
        sender, receiver, message = post.popleft()
        sent.append((sender, receiver, message))
        side, k = sides[receiver], place[receiver][sender]
        if message.kind == REQUEST and message.payload is not None:
            (reply,) = side.answer([(k, sides[sender].cipher.public, message)])
            post.append((receiver, sender, reply))
        elif message.kind != REQUEST:
            again = side.accept(k, message)
            if again is not None:
                post.append((receiver, sender, again))
    assert all(side.complete for side in sides)
    return sent


def secret_factors(network, sides):
    """g[i, j] as floats, broadcast over the values."""
    g = {}
    for i, side in enumerate(sides):
        unit = 1.0 if side.n_max is None else UNIT
        for place, j in enumerate(network.neighbours[i].tolist()):
            g[i, j] = np.broadcast_to(side._masks[place] * unit, side.n_values)
    return g


def integers(values, n_max):
    return [int(np.rint(n_max * value)) for value in values]


def check_differences(network, sides, values):
    """Compare every row with g_ij g_ji (u_j - u_i), within half a quantum."""
    g = secret_factors(network, sides)
    n_max = sides[0].n_max
    rows = {}
    for i, side in enumerate(sides):
        differences = side.differences()
        assert differences.shape == (len(network.neighbours[i]), side.n_values)
        for row, j in zip(differences, network.neighbours[i].tolist(), strict=True):
            rows[i, j] = row
            product = g[i, j] * g[j, i]
            assert ((g[i, j] >= 0.1 - UNIT) & (g[i, j] <= 1)).all()
            if n_max is None:
                step = np.subtract(values[j], values[i])
                np.testing.assert_allclose(row, product * step, rtol=1e-12)
                continue
            u_i, u_j = integers(values[i], n_max), integers(values[j], n_max)
            step = np.array([float(b - a) for a, b in zip(u_i, u_j, strict=True)])
            slack = 0.5 + 1e-15 * np.abs(step)
            assert (np.abs(row * n_max - product * step) <= product * slack).all()
    for i, j in rows:
        bound = 1e-12 * np.abs(rows[i, j])
        if n_max is not None:  # either end may be off by half a quantum
            bound += g[i, j] * g[j, i] / n_max
        assert (np.abs(rows[i, j] + rows[j, i]) <= bound).all()


def random_values(rng, n_agents, n_values, size):
    return size * rng.standard_normal((n_agents, n_values))
