"""Compute: what each GPU of a node reaches alone, and that it computes right."""

import pytest


@pytest.mark.certification("compute/*")
def test_gpus(cre_workflow, cre_check):
    cre_check(cre_workflow)
