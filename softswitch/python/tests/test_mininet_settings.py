# SPDX-License-Identifier: Apache-2.0
"""The parameters of softswitch.mininet's links."""

import pytest

from softswitch.mininet.settings import LinkError, Settings


def test_parameters_become_option_of_switch() -> None:
    settings = Settings(bw=1.5, delay="5ms", loss=0.1, max_queue_size=20)
    assert settings.option() == "rate=1500000bit,queue-packets=20,delay=5ms,loss=0.1%"
    assert Settings().option() == Settings(loss=0).option() == ""


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"bw": 0}, "bw=0: not a rate"),
        ({"delay": "5"}, "delay=5: no unit: write 5ms"),
        ({"delay": 5}, "delay=5: no unit"),
        ({"loss": 101}, "loss=101: not a percentage"),
        ({"max_queue_size": 10}, "max_queue_size=10: without a rate"),
    ],
)
def test_invalid_parameter_is_named(parameters: dict[str, object], message: str) -> None:
    with pytest.raises(LinkError, match=message):
        Settings(**parameters)  # type: ignore[arg-type]
