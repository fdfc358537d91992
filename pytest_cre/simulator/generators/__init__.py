"""What simulated containers write: benchmarks and trainings on modelled hardware."""
