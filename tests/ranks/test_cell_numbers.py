"""Errors name cells by the number that stands beside them in the notebook."""

from __future__ import annotations

import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

RUN = """def fail(rank):
    raise ValueError("mine")

ranks.run(fail)"""


@pytest.mark.timeout(120)
def test_a_magic_cell_and_a_plain_one_are_named_by_their_own_number() -> None:
    sources = [
        "from course import Ranks\nranks = Ranks(2)",
        "%%ranks\n\nraise ValueError('mine')",
        RUN,
        "ranks.close()",
    ]
    page = new_notebook(cells=[new_code_cell(source) for source in sources])
    NotebookClient(page, kernel_name="python3", allow_errors=True, timeout=60).execute()
    said = [output["evalue"] for cell in page.cells for output in cell.outputs if output["output_type"] == "error"]
    assert ["In [2], line 3" in said[0], "In [3], line 2" in said[1]] == [True, True], said
