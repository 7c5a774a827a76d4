"""The encrypted exchange against `phe`, number by number, and against others.

One exchange of V values over one edge: the owner encrypts, the neighbour masks,
dithers and blinds, the owner decrypts. Every ratio compares times of this one run.

    python benchmarks/bench_paillier.py [--key-sizes 2048 3072] [--values 520]

Rows of other libraries appear where they can be imported (`pip install pypaillier
sf-heu tenseal`); those that cannot are named.
"""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import os
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

# One thread for those who would take all cores; read when they are imported.
os.environ.setdefault("RAYON_NUM_THREADS", "1")

import gmpy2
import numpy as np
import phe

from skppdnmf._integers import check_dither, check_masks, check_values
from skppdnmf._paillier.batch import (
    check_units,
    deserialise,
    request_plaintexts,
    serialise,
)
from skppdnmf._paillier.fixed_base import FixedBase, random_digits
from skppdnmf._paillier.phe_reference import PheCipher
from skppdnmf._paillier.slots import pack_slots, unpack_slots
from skppdnmf.exchange import (
    LatticeCipher,
    LatticeLayout,
    MaskStream,
    PaillierCipher,
    SlotLayout,
    generate_keypair,
    integer_secrets,
    new_lattice_keypair,
    system_generator,
)

FACE_VALUES = 17_689  # 49 components of 19 x 19 pixels
VALUE_BITS, MASK_BITS = 24, 12  # n_max = 10**6 and U below 16
N_NEIGHBOURS = 3  # whom one entrywise request serves
TARGETS = {
    ("djn", "scalar"): {2048: 150, 3072: 250},
    ("djn", "entrywise"): {2048: 60, 3072: 90},
    ("subgroup", "scalar"): {2048: 450, 3072: 1000},
    ("subgroup", "entrywise"): {2048: 120, 3072: 200},
}
TARGET_TWO = 1.8
TARGET_LATTICE = 120
STEPS = ("encrypt", "respond", "decrypt")
COMBINATIONS = tuple(TARGETS)


def best(function: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Shortest processor time of several runs, and the last result.

    What runs here has one thread; its processor time is its time on an idle machine.
    """
    times = []
    for _ in range(repeats):
        start = time.process_time()
        result = function()
        times.append(time.process_time() - start)
    return min(times), result


def make_batch(layout: SlotLayout) -> tuple[Any, ...]:
    """Values of both sides, masks, dithers."""
    rng = system_generator()
    limit = 2**layout.value_bits
    own, other = rng.integers(-limit + 1, limit, (2, layout.n_values))
    return own, other, *integer_secrets(MaskStream(), layout)


def time_exchange(side: Any, layout: SlotLayout, repeats: int) -> dict[str, Any]:
    """Seconds per value of the three steps, and the bytes each way."""
    own, other, masks, dither = make_batch(layout)
    public = side.public

    def reply() -> Any:
        return side.reply(public, request, other, masks, dither, layout)

    encrypting, request = best(lambda: side.request(own, layout), repeats)
    responding, answer = best(reply, repeats)
    decrypting, result = best(lambda: side.open(answer, layout), repeats)
    factors = np.broadcast_to(masks, own.shape)
    if result.tolist() != (factors * (other - own) + dither).tolist():
        raise AssertionError("the exchange computed a wrong number")
    count = layout.n_values
    return {
        "encrypt": encrypting / count,
        "respond": responding / count,
        "decrypt": decrypting / count,
        "there": request.n_bytes / count,
        "back": answer.n_bytes / count,
        "request": request,
        "answer": answer,
        "batch": (own, other, masks, dither),
    }


def per_edge(steps: dict[str, Any], masking: str) -> dict[str, float]:
    """Share an entrywise request among the neighbours that it serves."""
    served = N_NEIGHBOURS if masking == "entrywise" else 1
    edge = {step: steps[step] for step in STEPS}
    edge["encrypt"] /= served
    return edge


def python_time(steps: dict[str, Any], public: Any, layout: SlotLayout) -> float:
    """Seconds per value of checks, packing and serialisation, apart from the powers."""
    own, other, masks, dither = steps["batch"]
    received = deserialise(steps["request"].data, public)
    answered = deserialise(steps["answer"].data, public)
    served = N_NEIGHBOURS if layout.masking == "entrywise" else 1

    def owner() -> None:
        request_plaintexts(check_values(own, layout), layout)
        serialise(received, public.key_size)

    def edge() -> None:
        values = check_values(other, layout)
        factors = check_masks(masks, layout)
        numbers = values * factors + check_dither(dither, factors, layout)
        plaintexts = pack_slots(numbers, layout.reply_bits, layout)
        deserialise(steps["request"].data, public)
        check_units(answered, public)
        serialise(answered, public.key_size)
        deserialise(steps["answer"].data, public)
        unpack_slots([p % public.n for p in plaintexts], public.n, layout)

    seconds = best(owner, 5)[0] / served + best(edge, 5)[0]
    return seconds / layout.n_values


def run_agent(side: PaillierCipher, layout: SlotLayout, repeats: int) -> float:
    """One agent exchanging with itself; seconds, tables already warm."""
    own, other, masks, dither = make_batch(layout)
    served = N_NEIGHBOURS if layout.masking == "entrywise" else 1

    def once() -> None:
        request = side.request(own, layout)
        for _ in range(served):
            answer = side.reply(side.public, request, other, masks, dither, layout)
            side.open(answer, layout)

    once()
    start = time.perf_counter()
    for _ in range(repeats):
        once()
    return time.perf_counter() - start


def two_over_one(
    executor: Any, sides: list[PaillierCipher], layout: SlotLayout, repeats: int
) -> float:
    """Throughput of two agents at the same time over that of one."""

    def slowest(count: int) -> float:
        jobs = [
            executor.submit(run_agent, side, layout, repeats) for side in sides[:count]
        ]
        return max(job.result() for job in jobs)

    slowest(2)
    one = min(slowest(1) for _ in range(3))
    two = min(slowest(2) for _ in range(3))
    return 2 * one / two


def verdict(ratio: float, target: float | None) -> str:
    """Say whether a target is met, where there is one."""
    if target is None:
        return f"{ratio:8.4g}x"
    return (
        f"{ratio:8.4g}x (target {target:g}x: {'met' if ratio >= target else 'MISSED'})"
    )


def bench_phe(key_size: int, n_values: int) -> dict[str, Any]:
    """Time the baseline."""
    side = PheCipher(phe.generate_paillier_keypair(n_length=key_size)[1])
    layout = SlotLayout(n_values, VALUE_BITS, MASK_BITS, "entrywise", key_size)
    steps = time_exchange(side, layout, 2)
    parts = ", ".join(f"{1e3 * steps[k]:.2f} {k}" for k in STEPS)
    print(
        f"phe {phe.__version__} with gmpy2, {n_values} values per edge, scaled per "
        f"value: {1e3 * sum(steps[k] for k in STEPS):.2f} ms per value ({parts}); "
        f"{steps['there']:.0f} + {steps['back']:.0f} bytes"
    )
    return steps


def bench_ours(key_size: int, n_values: int, baseline: dict[str, Any]) -> None:
    """Print the four rows of the table."""
    whole = sum(baseline[k] for k in STEPS)
    shared = sum(per_edge(baseline, "entrywise").values())
    for scheme, masking in COMBINATIONS:
        public, private = generate_keypair(key_size, scheme)
        layout = SlotLayout(n_values, VALUE_BITS, MASK_BITS, masking, key_size)
        side = PaillierCipher(private)
        time_exchange(side, layout, 1)  # builds the tables
        steps = time_exchange(side, layout, 4)
        edge = per_edge(steps, masking)
        total = sum(edge.values())
        shares = ", ".join(f"{k} {100 * v / total:.0f} %" for k, v in edge.items())
        python = python_time(steps, public, layout) / total
        target = TARGETS[scheme, masking].get(key_size)
        print(
            f"{masking:9} {scheme:8} {1e6 * total:7.1f} us/value "
            f"{verdict(whole / total, target)}  "
            f"bytes/value {steps['there']:.1f} there {steps['back']:.1f} back; "
            f"{shares}; of which Python (checks, packing, bytes) {100 * python:.1f} %"
        )
        if masking == "entrywise":
            print(
                f"{'':19}against phe sharing its request among {N_NEIGHBOURS} "
                f"neighbours too: {shared / total:.1f}x"
            )


def bench_lattice(n_values: int) -> None:
    """The lattice cipher at the faces' values, beside packed Paillier, by turns."""
    slots = SlotLayout(n_values, VALUE_BITS, MASK_BITS, "entrywise", 2048)
    paillier = PaillierCipher(generate_keypair(2048)[1])
    time_exchange(paillier, slots, 1)  # builds the tables
    try:
        lattice = LatticeCipher(new_lattice_keypair())
    except ImportError as error:
        print(f"not installed here ({error})")
        return
    for masking in ("entrywise", "scalar"):
        layout = LatticeLayout(FACE_VALUES, VALUE_BITS, MASK_BITS, masking)
        ratios, totals = [], []
        for _ in range(3):
            one = sum(per_edge(time_exchange(paillier, slots, 2), "entrywise").values())
            steps = time_exchange(lattice, layout, 3)
            edge = per_edge(steps, "entrywise")  # a request serves all neighbours
            totals.append(sum(edge.values()))
            ratios.append(one / totals[-1])
        shares = ", ".join(f"{k} {100 * v / totals[-1]:.0f} %" for k, v in edge.items())
        target = TARGET_LATTICE if masking == "entrywise" else None
        print(
            f"{masking:9} BFV {1e6 * min(totals):11.2f} us/value "
            f"{verdict(float(np.median(ratios)), target)} over packed Paillier, "
            f"entrywise; bytes/value {steps['there']:.1f} there {steps['back']:.1f} "
            f"back; {shares}"
        )


def bench_two(key_size: int, n_values: int) -> None:
    """Two agents at a time, each in a process of its own.

    Processes are what an estimator chooses by itself where they pay; threads hand the
    interpreter's lock to and fro. Where two stay far below 2x, the machine is busy with
    something else.
    """
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, spawn) as processes:
        for scheme, masking in COMBINATIONS:
            layout = SlotLayout(n_values, VALUE_BITS, MASK_BITS, masking, key_size)
            sides = [
                PaillierCipher(generate_keypair(key_size, scheme)[1]) for _ in range(2)
            ]
            repeats = 2 if scheme == "djn" else 6
            ratio = two_over_one(processes, sides, layout, repeats)
            print(f"{masking:9} {scheme:8} {verdict(ratio, TARGET_TWO)}  two processes")


def bench_windows(key_size: int) -> None:
    """Memory and time of the noise tables by window."""
    public, private = generate_keypair(key_size)
    count = 52  # one noise for each slot of a plaintext
    for window in range(4, 11):
        owner_bits = public.owner_bits
        responder_bits = owner_bits + MASK_BITS + 64
        owner = [
            FixedBase(public.noise_base, m, window) for m in (private.p, private.q)
        ]
        responder = FixedBase(public.noise_base, public.n, window)
        digits = random_digits(owner_bits, window, count)
        longer = random_digits(responder_bits, window, count)
        columns = []
        for tables, drawn in ((owner, digits), ([responder], longer)):
            build = best(lambda t=tables, d=drawn: [x.extend(len(d)) for x in t], 1)[0]
            use = best(lambda t=tables, d=drawn: [x.powers(d) for x in t], 5)[0]
            size = sum(table.n_bytes for table in tables) / 2**20
            columns.append(
                f"{size:5.1f} MB, build {1e3 * build:4.0f} ms, "
                f"{1e6 * use / count:4.0f} us/noise"
            )
        print(f"window {window:2}: owner {columns[0]}; responder {columns[1]}")


def bench_pypaillier(key_size: int, n_values: int) -> str:
    """Time pypaillier, number by number."""
    paillier = importlib.import_module("paillier")
    public, secret = paillier.generate_keypair(key_size)
    layout = SlotLayout(n_values, VALUE_BITS, MASK_BITS, "entrywise", key_size)
    own, other, masks, dither = make_batch(layout)

    def exchange() -> Any:
        asked = paillier.encrypt_integers(public, (-own).tolist())
        masked = paillier.multiply_integers_public(
            public, [bytes(x) for x in asked], masks.tolist()
        )
        # Fresh encryptions of the addend, so that the reply is blinded.
        added = paillier.encrypt_integers(public, (masks * other + dither).tolist())
        pairs = zip(masked, added, strict=True)
        sums = [paillier.add_many(public, [bytes(x), bytes(y)]) for x, y in pairs]
        return paillier.decrypt_exact_many(secret, [bytes(x) for x in sums])

    seconds, result = best(exchange, 2)
    if [x for x, _ in result] != (masks * (other - own) + dither).tolist():
        raise AssertionError("pypaillier computed a wrong number")
    return f"{1e6 * seconds / n_values:9.1f} us/value, number by number, one thread"


def bench_heu(key_size: int, n_values: int) -> str:
    """Time sf-heu; its vectors hold one ciphertext a number."""
    hnp = importlib.import_module("heu.numpy")
    heu = importlib.import_module("heu.phe")
    kit = hnp.setup(heu.SchemaType.ZPaillier, key_size)
    layout = SlotLayout(n_values, VALUE_BITS, MASK_BITS, "entrywise", key_size)
    own, other, masks, dither = make_batch(layout)
    encoder = heu.BigintEncoder(kit.get_schema())

    def exchange() -> Any:
        evaluator = kit.evaluator()
        asked = kit.encryptor().encrypt(hnp.array(-own, encoder))
        masked = evaluator.mul(asked, hnp.array(masks.astype(np.int64), encoder))
        added = kit.encryptor().encrypt(hnp.array(masks * other + dither, encoder))
        return kit.decryptor().decrypt(evaluator.add(masked, added)).to_numpy(encoder)

    seconds, result = best(exchange, 2)
    if result.tolist() != (masks * (other - own) + dither).tolist():
        raise AssertionError("sf-heu computed a wrong number")
    return f"{1e6 * seconds / n_values:9.1f} us/value, number by number"


def bench_tenseal(scheme: str) -> str:
    """Time a lattice scheme: fast, long, and not blinded."""
    ts = importlib.import_module("tenseal")
    degree = 8192
    n_values = degree // 2
    layout = SlotLayout(n_values, VALUE_BITS, MASK_BITS, "entrywise", 2048)
    own, other, masks, dither = make_batch(layout)
    if scheme == "CKKS":
        moduli = [60, 40, 40, 60]
        context = ts.context(ts.SCHEME_TYPE.CKKS, degree, None, moduli)
        context.global_scale = 2**40
        vector = ts.ckks_vector
    else:
        modulus = 2**39 + 2 * degree + 1  # holds 38 bits and a sign
        while not gmpy2.is_prime(modulus):
            modulus += 2 * degree
        context = ts.context(ts.SCHEME_TYPE.BFV, degree, plain_modulus=modulus)
        vector = ts.bfv_vector
    sizes = []

    def exchange() -> Any:
        asked = vector(context, (-own).tolist())
        answer = asked * masks.tolist() + (masks * other + dither).tolist()
        sizes[:] = [len(asked.serialize()), len(answer.serialize())]
        return answer.decrypt()

    seconds, result = best(exchange, 3)
    error = np.abs(np.array(result) - (masks * (other - own) + dither)).max()
    there, back = (size / n_values for size in sizes)
    return (
        f"{1e6 * seconds / n_values:9.1f} us/value, bytes/value {there:.1f} there "
        f"{back:.1f} back, largest error {error:.3g}; its noise is not blinded: "
        "an answer may show the masks"
    )


def bench_others(n_values: int) -> None:
    """Libraries that are not dependencies."""
    rows: dict[str, Callable[[], str]] = {
        "pypaillier": lambda: bench_pypaillier(2048, n_values),
        "sf-heu": lambda: bench_heu(2048, n_values),
        "TenSEAL CKKS": lambda: bench_tenseal("CKKS"),
        "TenSEAL BFV": lambda: bench_tenseal("BFV"),
    }
    for name, row in rows.items():
        try:
            text = row()
        except ImportError as error:
            text = f"not installed here ({error})"
        except Exception as error:
            text = f"failed: {type(error).__name__}: {error}"
        print(f"{name:13} {text}")


def main() -> None:
    """Print every table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--key-sizes", type=int, nargs="+", default=[2048, 3072])
    parser.add_argument("--values", type=int, default=624)
    parser.add_argument("--phe-values", type=int, default=24)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(
        f"value_bits={VALUE_BITS}, mask_bits={MASK_BITS}, {options.values} values per "
        f"edge; entrywise requests serve {N_NEIGHBOURS} neighbours and count a third "
        "each; every message is serialised"
    )
    for key_size in options.key_sizes:
        print(f"\n== {key_size} bits, one thread, against phe number by number")
        baseline = bench_phe(key_size, options.phe_values)
        bench_ours(key_size, options.values, baseline)
        print(f"-- {key_size} bits, two agents at a time over one")
        bench_two(key_size, options.values)
    print(f"\n== the lattice cipher, {FACE_VALUES:,} values, one thread")
    bench_lattice(options.values)
    print("\n== noise tables, 2048 bits")
    bench_windows(2048)
    print("\n== other libraries, 2048-bit keys or 128-bit security")
    bench_others(options.phe_values)


if __name__ == "__main__":
    main()
