# SPDX-License-Identifier: Apache-2.0
"""Single routes: apps are connected on the card for as long as a value lasts."""

import os
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import viaduct


def test_an_apps_output_goes_into_another_app_while_the_route_lasts():
    data = np.frombuffer(os.urandom(100_000), np.uint8)
    with viaduct.open("sim") as card, card.load("pass") as first, card.load("pass") as second:
        assert card.routes() == []
        with card.route(first, second) as route:
            ends = (f"slot:{first.index}:0", f"slot:{second.index}:0")
            assert card.routes() == [ends] and route.in_effect
            out = np.zeros(100_000, np.uint8)
            sending = threading.Thread(target=lambda: first.transfer({"in": data}, {}))
            sending.start()
            second.transfer({}, {"out": out})
            sending.join()
            assert np.array_equal(out, data)
            # What has come had a length that was not known: the run has isolated the slot, and so ended the route.
            assert not route.in_effect
            with pytest.raises(viaduct.BusyError):
                card.close()
            with pytest.raises(viaduct.ArgumentError, match="input in has no route"):
                second.transfer({}, {"out": out})
        with card.route(first, second) as again:
            assert again.in_effect
            with pytest.raises(viaduct.ArgumentError, match="output out has no route"):
                second.transfer({}, {})
        assert card.routes() == []
        # As text, and one that ends with its app.
        route = card.route(ends[0], f"slot:{second.index}")
        assert card.routes() == [ends]
        second.close()
        assert not route.in_effect and card.routes() == []
        route.close()
        route.close()


@pytest.mark.parametrize(
    ("source", "sink", "words"),
    [
        ("slot:0", "slot:x", "no end of a route"),
        ("", "slot:0", "no end of a route"),
        ("slot:0", "slot:9", "slots 0 to 3"),
        ("slot:0", "slot:3", "claim it first"),
        ("slot:0:9", "slot:0", "streams 0 to"),
        ("board:net", "board:net", "one end has to be a slot"),
        ("virtio:net", "slot:0", "routes go to slots"),
        ("slot:0\0", "slot:0", "zero byte"),
    ],
)
def test_impossible_routes_are_refused_by_name(source: str, sink: str, words: str):
    with viaduct.open("sim") as card, card.load("pass"), pytest.raises(viaduct.Error, match=words):
        card.route(source, sink)
