"""Runs of pytest inside pytest forget what they import; these C modules cannot be loaded twice."""

import pydantic  # noqa: F401
import re2  # noqa: F401
import yaml  # noqa: F401
