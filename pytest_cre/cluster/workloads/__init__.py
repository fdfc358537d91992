"""How each kind of workload is made, watched and read."""
