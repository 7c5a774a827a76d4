"""The Paillier cryptosystem: keys, noise, slots, batches, payloads."""
