"""The Paillier cipher: keys, noise, slots, batches."""
