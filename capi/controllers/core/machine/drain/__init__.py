"""Emptying the Node of a Machine that goes: which Pods leave in which order, and which volumes have to follow."""
