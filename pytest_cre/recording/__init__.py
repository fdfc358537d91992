"""Recordings for the simulator, made from evidence: no name and no address of the site is left."""
