"""Cluster: the root of a workload cluster: infrastructure, control plane, workers, and their end in the right order."""
