"""Room in a budget is made by its ceiling: no command gives an allowance back."""

from __future__ import annotations

import pytest

from crewlet.cli import main


@pytest.mark.spec("C-184")
@pytest.mark.parametrize("argv", [["budgets", "reset"], ["coordination", "reset"], ["coordination", "put"], ["reset"]])
def test_no_command_resets_a_budget(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(argv)

    assert ended.value.code == 2
    assert "invalid choice" in capsys.readouterr().err
