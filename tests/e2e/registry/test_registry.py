"""Writers' schemas of a real registry: followed without a restart, refused by reason, waited for, and then kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.joined_world import eventually
from tests.e2e.registry.registered_world import FIELDS, JSON_SCHEMA, PROTO, READER, TOPICS, Registered
from tests.faults.rig.processes import end_all

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.supervisor.outside import stop_stream


@pytest.fixture
def world(kafka: KafkaConnection, tmp_path: Path) -> Iterator[Registered]:
    """Have a registry, and topics."""
    made = Registered(tmp_path, kafka)
    with TopicAdmin(kafka) as admin:
        for topic in TOPICS.values():
            admin.create_topic(topic, 1)
        made.registry.start()
        yield made
        made.registry.stop()
        end_all(made.home)
        for topic in TOPICS.values():
            admin.delete_topic(topic)


def evolved(*fields: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return a writer's schema of other fields."""
    return {**READER, "fields": list(fields), **changes}


ID, AT = {"name": "id", "type": "long"}, {"name": "at", "type": "string"}
FIRST = evolved(ID, {"name": "shop", "type": "string"}, {"name": "amount", "type": "double"}, AT)
NARROW = evolved(
    {"name": "amount", "type": "float"},
    {"name": "id", "type": "int"},
    {"name": "store", "type": "string"},
    {"name": "note", "type": ["null", "string"], "default": None},
    AT,
)
WRONG = evolved({"name": "id", "type": "string"}, {"name": "amount", "type": "double"}, AT)
LATER = evolved(ID, {"name": "amount", "type": "double"}, AT)


def register(world: Registered) -> dict[str, int]:
    """Register all that the test ever sends, always by the same numbers: what comes last is there before others."""
    registry = world.registry
    return {
        "avro": registry.register("avro-value", json.dumps(FIRST)),
        "protobuf": registry.register("protobuf-value", PROTO % FIELDS, "PROTOBUF"),
        "json": registry.register("json-value", json.dumps(JSON_SCHEMA), "JSON"),
        "avro, later": registry.register("avro-value", json.dumps(LATER)),
        "avro, evolved": registry.register("avro-value", json.dumps(NARROW)),
        "protobuf, evolved": registry.register(
            "protobuf-value", PROTO % (FIELDS.replace("int64", "int32") + " string note = 9;"), "PROTOBUF"
        ),
        "avro, wrong": registry.register("avro-value", json.dumps(WRONG)),
        "protobuf, wrong": registry.register(
            "protobuf-value", PROTO % FIELDS.replace("int64", "string"), "PROTOBUF"
        ),
    }


@pytest.mark.faults
def test_schemas_of_a_registry_are_followed_waited_for_and_kept(world: Registered) -> None:
    """One driver sees three formats evolve; a registry that dies costs nothing, and no build needs one."""
    ids = register(world)
    world.send("avro", *(world.avro(ids["avro"], FIRST, id=n, shop="a", amount=1.5) for n in range(100)))
    world.send("protobuf", *(world.proto(ids["protobuf"], id=n, shop="p", amount=1.5) for n in range(100)))
    world.send("json", *(world.json(ids["json"], id=n, shop="j", amount=1.5) for n in range(100)))
    world.seamline("stream", "start", "orders", "--here")
    eventually("the first records to be read", world.is_read)
    assert (world.accepted, world.refused.total()) == (300, 0)
    first = eventually("a driver", lambda: world.driver)

    narrow = [world.avro(ids["avro, evolved"], NARROW, id=n, store="a", amount=0.5) for n in range(50)]
    wide = [world.avro(ids["avro"], FIRST, id=n, shop="a", amount=1.5) for n in range(50)]
    world.send("avro", *(each for pair in zip(narrow, wide, strict=True) for each in pair))
    world.send("protobuf", *(world.proto(ids["protobuf, evolved"], id=n, shop="p") for n in range(50)))
    eventually("what has evolved to be read", world.is_read)
    assert (world.accepted, world.refused.total()) == (450, 0)

    world.send("avro", *(world.avro(ids["avro, wrong"], WRONG, id=str(n), amount=1.0) for n in range(3)))
    world.send("avro", world.avro(ids["json"], FIRST, id=1, shop="a", amount=1.0), b'{"id": 1}')
    world.send("protobuf", *(world.proto(ids["protobuf, wrong"], id=n) for n in range(4)))
    world.send("json", *(world.json(4711, id=n, shop="j") for n in range(5)), world.json(ids["json"], id="x"))
    eventually("what cannot be read to be refused", world.is_read)
    refused = {
        "incompatible schema": 8,
        "unknown schema": 5,
        "malformed avro": 1,
        "mistyped field id": 1,
    }
    assert (world.accepted, world.refused) == (450, refused)
    details = {detail for reason, detail in world.quarantined() if reason.endswith(" schema")}
    assert details == {
        f"schema {ids['avro, wrong']}: Schema mismatch: string is not long",
        f"schema {ids['json']} is of kind JSON, not AVRO",
        f"schema {ids['protobuf, wrong']}: field 1 of shop.Order is string, not int64",
        "schema 4711 is not in schema_registry",
    }

    assert f"{ids['avro, later']}.json" not in world.kept()

    # A schema that nobody has kept yet, while the registry is away: records wait, whatever comes behind them.
    world.registry.stop()
    world.send("avro", *(world.avro(ids["avro, later"], LATER, id=n, amount=2.0) for n in range(20)), wide[0])
    eventually("the registry to be missed", lambda: "cannot be asked" in world.log)
    world.send("json", *(world.json(ids["json"], id=n, shop="j", amount=1.0) for n in range(10)))
    again = world.log.count("cannot be asked") + 3
    eventually("it to be asked again", lambda: world.log.count("cannot be asked") >= again)
    assert (world.accepted, world.refused) == (450, refused)
    world.registry.start()
    assert register(world) == ids
    eventually("what has waited to be read", world.is_read)
    assert (world.accepted, world.refused) == (481, refused)
    assert world.driver == first, "the same driver has seen all of it"
    failed = [line for line in world.log.splitlines() if "at the same position failed" in line]
    assert {line.split("failed: ")[1].split(" registry ")[0] for line in failed} == {"The schema"}
    assert world.kept() == {"registry.json", *(f"{id}.json" for id in ids.values())}

    # From here on there is no registry.
    world.registry.stop()
    world.seamline("drain", "orders", "--reason", "no more records")
    answer = {
        "a": (201, 50 * 0.5 + 151 * 1.5),
        "p": (150, 100 * 1.5),
        "j": (110, 100 * 1.5 + 10 * 1.0),
        "none": (20, 20 * 2.0),
    }
    eventually("the day to close", lambda: "1 interval" in world.seamline("plan", "orders"))
    assert world.daily() == answer
    world.seamline("run", "orders", "--dirty")
    assert world.daily() == answer
    world.seamline("stream", "stop", "orders")
    assert stop_stream(world.layout, timeout=120)

    # Another record version: every record is judged again, by the schemas that are kept.
    world.define(more='rules=[Rule("positive", "id >= 10")],')
    world.seamline("run", "orders", "--dirty")
    assert world.judged_again() == (400, {**refused, "rule positive": 81})
    assert "nothing is wrong" in world.seamline("audit", "orders")

    # Another name of the connection: the stream keeps what the log names, and until then nothing is refused.
    world.define(more='rules=[Rule("positive", "id >= 5")],', registry="renamed")
    assert "Nothing is kept" in world.seamline("run", "orders", "--dirty", code=4)
    world.registry.start()
    assert register(world) == ids
    world.seamline("stream", "start", "orders", "--here")
    eventually("the log's schemas to be kept", lambda: world.kept("renamed") == world.kept())
    world.registry.stop()
    world.seamline("stream", "stop", "orders")
    assert stop_stream(world.layout, timeout=120)
    world.seamline("run", "orders", "--dirty")
    assert world.judged_again() == (440, {**refused, "rule positive": 41})
