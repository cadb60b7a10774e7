"""Addresses of topics, and the settings of clients: what is read, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nestream.model.kafka import KafkaPlace, read_kafka
from nestream.runtime.spark.stream_kafka import CONNECTOR
from nestream.sink import SinkError, open_sink
from nestream.sink.match_key import match_key
from nestream.sink.place import share_a_topic
from nestream.source import SourceError, open_source
from tests.cli.commands import ROOT


def test_an_address_names_brokers_topics_and_options() -> None:
    place = read_kafka("kafka://one,[::1]:9093,two:1/a,b.c,a?key=id", ("key",))
    assert place == KafkaPlace("one:9092,[::1]:9093,two:1", ("a", "b.c"), {"key": "id"})
    assert place.where == "kafka://one:9092,[::1]:9093,two:1/a,b.c"


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("kafka://", "it names no broker. Write kafka://HOST:PORT/TOPIC"),
        ("kafka:///orders", "it names no broker"),
        ("kafka://here", "it names no topic"),
        ("kafka://here:port/orders", "'here:port' is not the address of a broker"),
        ("kafka://here:70000/orders", "'here:70000' is not the address of a broker"),
        ("kafka://here/or ders", "'or ders' is not the name of a topic"),
        ("kafka://here/a/b", "'a/b' is not the name of a topic"),
        ("kafka://here/orders?keys=id", "there is no option 'keys'. Did you mean key?"),
        ("kafka://here/orders?key", "key has no value"),
        ("kafka://here/orders?key=a&key=b", "key is there twice"),
        ("kafka://here/orders?key=a&topic=a", "two options name the attribute 'a'"),
        ("kafka://here/orders?start=now", "start is 'now'. Write start=beginning or start=end"),
        ("kafka://here/orders?config=/nowhere", "cannot read the settings in /nowhere"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused_with_what_to_write(address: str, said: str) -> None:
    with pytest.raises(SourceError) as refused:
        open_source(address)
    assert said in str(refused.value)


def test_matches_go_to_one_topic_in_a_way_that_is_known() -> None:
    with pytest.raises(SinkError, match="matches go to one topic"):
        open_sink("kafka://here/a,b")
    with pytest.raises(SinkError, match="Write delivery=exactly-once or delivery=at-least-once"):
        open_sink("kafka://here/a?delivery=once")
    with pytest.raises(SinkError, match="cannot hold parquet"):
        open_sink("kafka://here/a", "parquet")


@pytest.mark.parametrize(
    ("one", "other", "share"),
    [
        ("kafka://here/orders", "kafka://here:9092/orders?delivery=at-least-once", True),
        ("kafka://here/orders,clicks?start=end", "kafka://HERE/clicks", True),
        ("kafka://one,two/orders", "kafka://three,two/orders", True),
        ("kafka://localhost/orders", "kafka://127.0.0.1/orders", True),
        ("kafka://here/orders", "kafka://here/matches", False),
        ("kafka://here/orders", "kafka://there/orders", False),
        ("kafka://here:1/orders", "kafka://here:2/orders", False),
        ("kafka://here/orders", "orders", False),
        ("kafka://here/orders", "kafka://here", False),
    ],
)
def test_two_addresses_share_a_topic_if_they_name_it_at_the_same_broker(
    one: str, other: str, share: bool
) -> None:
    assert share_a_topic(one, other) is share
    assert share_a_topic(other, one) is share


def test_settings_come_from_a_file_except_those_that_exactly_once_depends_on(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("# ours\n\nsecurity.protocol = SASL_SSL\nsasl.password=a=b\n")
    place = KafkaPlace("here:9092", ("orders",), {"config": str(path)})
    assert place.settings() == {
        "bootstrap.servers": "here:9092",
        "security.protocol": "SASL_SSL",
        "sasl.password": "a=b",
    }
    for text, said in (
        ("client.id=x\ngroup.id=y\n", "line 2: nestream sets group.id itself"),
        ("client.id\n", "line 1: expected a setting. Write name=value"),
        ("no.such=1\n", 'No such configuration property: "no.such"'),
    ):
        path.write_text(text)
        with pytest.raises(SourceError) as refused:
            open_source(f"kafka://here/orders?config={path}")
        assert said in str(refused.value)


def test_the_pages_and_the_hint_name_the_versions_of_the_connector_that_are_tested() -> None:
    tested = re.findall(
        r"<artifactId>(.*)</artifactId>\s*<version>(.*)</version>\s*<exclusions|"
        r"<artifactId>(commons-pool2)</artifactId>\s*<version>(.*)</version>",
        Path(__file__).with_name("connector.xml").read_text(encoding="utf-8"),
    )
    jars = ["-".join(part for part in found if part) for found in tested]
    assert len(jars) == 4
    guides = ROOT / "docs" / "guides"
    page = (guides / "kafka.md").read_text(encoding="utf-8")
    assert [jar for jar in jars if f"`{jar}.jar`" not in page] == []
    assert CONNECTOR.rsplit(":", 2)[1:] == list(tested[0][:2])
    for text in (page, (guides / "spark-streams.md").read_text(encoding="utf-8")):
        assert f"--packages {CONNECTOR}\n" in text


def test_a_match_keeps_its_key_when_an_attribute_joins_or_a_column_widens() -> None:
    key = match_key('{"query":"late","a":{"id":7,"ts":"2026-01-05T08:00:00Z"},"match_end":3}')
    assert len(key) == 32
    assert key == match_key(
        '{"query":"late","a":{"id":7.0,"note":null,"ts":"2026-01-05T08:00:00Z"},"match_end":3}'
    )
    assert key != match_key('{"query":"early","a":{"id":7,"ts":"2026-01-05T08:00:00Z"},"match_end":3}')
    assert key != match_key('{"query":"late","a":{"id":7.5,"ts":"2026-01-05T08:00:00Z"},"match_end":3}')
