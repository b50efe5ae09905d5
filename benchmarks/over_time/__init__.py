"""Reliability over time: simulated crowds, real seconds and orders, and speed."""
