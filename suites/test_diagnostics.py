"""Diagnostics: every test on every GPU of a node must pass."""

import pytest


@pytest.mark.certification("diagnostics/*")
def test_gpus(cre_workflow, cre_check):
    cre_check(cre_workflow)
