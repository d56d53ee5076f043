"""%%ranks cells: a namespace that stays, the last expression of each rank, options, and plain words for mistakes."""

from __future__ import annotations

import re

import pytest
from IPython.core.interactiveshell import InteractiveShell

from course.errors import RankError, StallError, UsageError
from course.ranks import Ranks
from course.ranks.magic import register


@pytest.fixture(scope="module")
def shell():
    shell = InteractiveShell()
    register(shell)
    yield shell
    for value in list(shell.user_ns.values()):
        if isinstance(value, Ranks):
            value.close()
    magic = shell.magics_manager.magics["cell"]["ranks"]
    if magic._own is not None:
        magic._own.close()


@pytest.fixture
def cell(shell, capsys):
    def run(text):
        capsys.readouterr()
        result = shell.run_cell(text, store_history=True)
        out = capsys.readouterr().out
        if result.error_before_exec or result.error_in_exec:
            raise result.error_before_exec or result.error_in_exec
        return out

    return run


def test_a_namespace_that_stays_and_the_last_expression(cell):
    out = cell("%%ranks -n 2\nx = rank * 2\nprint('hi', rank)\n(x, world_size, str(device))")
    assert "Ranks: 2 ranks, gloo on cpu" in out and "[rank 1] hi 1" in out
    assert out.splitlines()[-2:] == ["[rank 0] (0, 2, 'cpu')", "[rank 1] (2, 2, 'cpu')"]
    assert cell("%%ranks\nx += 1\nx").splitlines() == ["[rank 0] 1", "[rank 1] 3"]
    assert cell("%%ranks\nx;") == ""
    assert cell("%%ranks --rank 1\nx") == "[rank 1] 3\n"
    assert cell("%%ranks --quiet\nprint('no')\nx") == ""


def test_functions_and_classes_of_a_cell_work_with_torch(cell):
    cell("%%ranks\nclass Net(torch.nn.Module):\n    pass\ndef total(t):\n    dist.all_reduce(t)\n    return t.item()")
    assert cell("%%ranks\ntotal(torch.ones(()))") == "[rank 0] 2.0\n[rank 1] 2.0\n"


def test_an_error_names_the_cell_and_its_line(cell):
    with pytest.raises(RankError) as caught:
        cell("%%ranks\ny = 1\nassert rank == 0, 'only 0'")
    assert re.search(r"In \[\d+\], line 3", str(caught.value))
    assert "assert rank == 0, 'only 0'" in str(caught.value)
    with pytest.raises(RankError, match="SyntaxError"):
        cell("%%ranks\ndef broken(:")


def test_a_stall_names_the_cell_too(cell):
    with pytest.raises(StallError, match=r"In \[\d+\], line 3"):
        cell("%%ranks\nif rank == 0:\n    dist.barrier()")


def test_a_name_of_the_notebook_gets_advice(cell):
    cell("only_here = 5")
    with pytest.raises(RankError, match=r"ranks.put\(only_here=only_here\)") as caught:
        cell("%%ranks\nonly_here")
    assert caught.value.failures[0].type_name == "NameError"


def test_time_works_above_and_inside(cell):
    assert "Wall time" in cell("%%time\n%%ranks\n1")
    assert "Wall time" in cell("%%ranks\n%%time\n1")


def test_figures_come_home(cell, shell, monkeypatch):
    shown = []
    monkeypatch.setattr("course.ranks.pool._show_figure", lambda rank, png: shown.append((rank, png[:4])))
    cell("%%ranks\nfrom matplotlib import pyplot as plt\nplt.plot([1, 2])\nplt.show()")
    assert sorted(shown) == [(0, b"\x89PNG"), (1, b"\x89PNG")]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("%%ranks -n two\n1", "used as %%ranks"),
        ("%%ranks --nonsense\n1", "used as %%ranks"),
        ("%%ranks --rank 7\n1", "rank 7 does not exist, ranks are 0 to 1"),
        ("%%ranks --rank a\n1", "numbers of ranks"),
        ("%%ranks\n!ls", "line 2: `!ls` is notebook syntax"),
        ("%%ranks -n 0\n1", "from 1 to"),
        ("%%ranks --timeout -3\n1", "timeout=-3"),
        ('%%ranks "unclosed\n1', "No closing quotation"),
    ],
)
def test_mistakes_get_a_sentence(cell, text, says):
    with pytest.raises(UsageError) as caught:
        cell(text)
    assert says in str(caught.value)


def test_another_number_replaces_the_gang_and_says_so(cell):
    out = cell("%%ranks -n 3\nworld_size")
    assert "2 ranks were replaced by 3; their variables are gone" in out and out.endswith("[rank 2] 3\n")
    with pytest.raises(RankError, match="name 'x' is not defined"):
        cell("%%ranks\nx")


def test_a_gang_of_the_learners_own_is_used(cell):
    cell("from course import Ranks\nmine = Ranks(2)\nmine.put(z=4)")
    assert cell("%%ranks\nz + rank") == "[rank 0] 4\n[rank 1] 5\n"
    cell("mine.close()")
    assert cell("%%ranks\nworld_size").endswith("[rank 2] 3\n")


def test_what_looks_like_a_magic_inside_a_text_is_text(cell):
    assert cell("%%ranks\ns = '''\n%not magic\n'''\nlen(s)").splitlines()[0] == "[rank 0] 12"


def test_a_cell_that_does_not_compile_shows_its_own_line_only(cell):
    with pytest.raises(RankError) as caught:
        cell("%%ranks\nx = 1\ny = = 2")
    assert re.search(r"In \[\d+\], line 3", str(caught.value)) and "y = = 2" in str(caught.value)
    assert "worker" not in str(caught.value)


def test_a_keyboard_interrupt_of_ones_own(cell):
    with pytest.raises(RankError, match="raised KeyboardInterrupt"):
        cell("%%ranks\nraise KeyboardInterrupt")
