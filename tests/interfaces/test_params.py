"""Arguments of tools are checked against their parameters."""

from __future__ import annotations

import pytest

from bunko.errors import QueryError
from bunko.interfaces.tools.tool import Param


@pytest.mark.parametrize(
    ("minimum", "maximum", "value"), [(0, 5, -1), (-5, 0, 1), (0, None, -1), (None, 0, 1), (1, 5, 0)]
)
def test_a_limit_of_zero_is_a_limit(minimum: int | None, maximum: int | None, value: int) -> None:
    with pytest.raises(QueryError, match="cannot be"):
        Param("n", "integer", minimum=minimum, maximum=maximum).validate(value)


@pytest.mark.parametrize("value", [0, 3, 5])
def test_numbers_within_the_limits_are_taken(value: int) -> None:
    assert Param("n", "integer", minimum=0, maximum=5).validate(value) == value
