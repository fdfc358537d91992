"""Adaptive fault isolation: which groups to test next, and what the results say of each node.

Pure: the same nodes and results give the same tests and the same conclusion, so a diagnosis can be
gone through again from what it left on disk.
"""
