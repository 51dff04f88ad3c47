"""Scenarios, the PySpark jobs that generate workloads, and readers that replay them."""
