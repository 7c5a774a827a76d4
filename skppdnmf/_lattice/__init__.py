"""The lattice cipher: BFV by Microsoft SEAL, thousands of integers a ciphertext."""
