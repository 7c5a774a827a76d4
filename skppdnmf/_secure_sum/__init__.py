"""The other protocol: network-wide totals under pairwise masks."""
