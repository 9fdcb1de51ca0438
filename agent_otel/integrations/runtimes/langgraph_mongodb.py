"""LangGraph's saver for MongoDB, which takes its serializer after its base class has made another one.

A checkpoint with its metadata is a document, and so is each channel that a node writes: each meets MongoDB's cap of a
document. What counts are the serialised values; the ids besides are some hundred bytes.
"""

from __future__ import annotations

from agent_otel.integrations.registry.entries import Candidate, Integration, Wrap
from agent_otel.integrations.runtimes import langgraph

ENTRY = Integration(
    "langgraph-checkpoint-mongodb",
    product="langgraph",
    distribution="langgraph-checkpoint-mongodb",
    minimum="0.1",
    tested="0.5: FerretDB, and a stand-in with MongoDB's limit; both speak its wire protocol",
    uncovered="the ids of a document",
    packages=("langgraph.checkpoint.mongodb",),
    sites=(Candidate("langgraph.checkpoint.mongodb.saver", Wrap("MongoDBSaver.__init__", "savers")),),
)

savers = langgraph.savers
