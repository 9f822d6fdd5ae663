"""Producers' counts, as whoever talks to Kafka has them: statements taken from their topics, and what they tell."""
