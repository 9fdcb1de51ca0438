"""A graph of LangGraph whose checkpoints are items of DynamoDB, or objects of S3, as moto has them."""

# mypy: disable-error-code="import-not-found,import-untyped,untyped-decorator,misc,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import contextlib
import logging
import os
from typing import TYPE_CHECKING, Any

import boto3
from langchain_core.messages import HumanMessage
from langgraph_checkpoint_aws import DynamoDBSaver
from moto.server import ThreadedMotoServer

from tests.contract.stores.programs.langgraph_graph import graph

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Json = dict[str, Any]


def make_table(client: Any, name: str) -> None:
    """Make the table that the saver wants."""
    keys = (("PK", "HASH"), ("SK", "RANGE"))
    client.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": key, "KeyType": kind} for key, kind in keys],
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key, _ in keys],
        BillingMode="PAY_PER_REQUEST",
    )


def items(client: Any, name: str) -> Json:
    """Bytes of the checkpoints' items and of the nodes': their names and values, as DynamoDB counts them."""
    sizes = {"state": 0, "output": 0}
    pages = client.get_paginator("scan").paginate(TableName=name)
    for item in (item for page in pages for item in page["Items"] if "payload" in item):
        size = sum(len(key) + len(next(iter(value.values()))) for key, value in item.items() if key != "ttl")
        size += 3 + 6 if "ttl" in item else 0
        # The key of what a node writes has the task's id and the channel's number besides.
        sizes["output" if item["PK"]["S"].count("#") > 2 else "state"] += size
    return sizes


@contextlib.contextmanager
def running(_: Json) -> Iterator[Callable[[str, Any], Any]]:
    """Yield what runs a graph a few times in one thread of a conversation."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    os.environ.update(AWS_ACCESS_KEY_ID="test", AWS_SECRET_ACCESS_KEY="test", AWS_DEFAULT_REGION="us-east-1")  # noqa: S106
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    dynamodb, s3 = (boto3.client(name, endpoint_url=url) for name in ("dynamodb", "s3"))
    s3.create_bucket(Bucket="checkpoints")

    def start(name: str, given: Json) -> Json:
        make_table(dynamodb, name)
        offload = {"bucket_name": "checkpoints", "endpoint_url": url} if name == "s3" else None
        options = {"ttl_seconds": 3600} if name == "ttl" else {}
        saver = DynamoDBSaver(
            table_name=name,
            endpoint_url=url,
            s3_offload_config=offload,
            enable_checkpoint_compression=name == "compressed",
            **options,
        )
        app = graph().compile(checkpointer=saver)
        app.name = "clerk"
        config = {"configurable": {"thread_id": f"thread-{name}"}}
        said, sizes = [], []
        for n in given["letters"]:
            question: Any = {"messages": [HumanMessage(str(n))]}
            for _ in range(given.get("attempts", 1)):
                try:
                    state = app.invoke(question, config, durability="sync")
                    said.append(len(state["messages"]))
                    break
                except dynamodb.exceptions.ClientError as error:
                    said.append(error.response["Error"]["Message"])
                    question = None
            sizes.append(items(dynamodb, name))
        objects = s3.list_objects_v2(Bucket="checkpoints").get("Contents", ()) if name == "s3" else ()
        return {
            "said": said,
            "sizes": [size["state"] for size in sizes],
            "output": sizes[-1]["output"],
            "objects": sum(each["Size"] for each in objects),
        }

    try:
        yield start
    finally:
        server.stop()
