"""Traces and metrics of hosts: spans per hop, their export by OTLP, and a collector of our own."""
