"""Selection, groups and manifests: pure, from entry and inventory to plan."""
