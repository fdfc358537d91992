"""Test set-up of this repository only; users of the plugin need none of it."""

pytest_plugins = ["pytester"]
