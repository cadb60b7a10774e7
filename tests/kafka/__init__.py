"""Kafka as source and sink, with a broker that the tests start."""
