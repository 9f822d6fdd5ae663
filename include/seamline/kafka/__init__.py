"""Kafka through kafka-python and librdkafka: connections by name, topic administration, writers."""

from __future__ import annotations

import logging

# Without a handler Python prints the client's own warnings to stderr, between our sentences.
logging.getLogger("kafka").addHandler(logging.NullHandler())
