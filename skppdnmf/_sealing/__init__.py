"""Identities of sites, and envelopes that only their receivers can open."""
