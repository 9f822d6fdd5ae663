"""Kafka through kafka-python: connections by name, topic administration, an idempotent writer."""

from __future__ import annotations

import logging

# Without a handler Python prints the client's own warnings to stderr, between our sentences.
logging.getLogger("kafka").addHandler(logging.NullHandler())
