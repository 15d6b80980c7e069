"""Adds two feeds to an Earmark server, lists all subscriptions, and removes one. Needs only Python 3.9 or newer.

    EARMARK_URL=https://pods.example EARMARK_TOKEN=emk_… python3 examples/python.py
"""

import json
import os
import sys
import urllib.error
import urllib.request
import uuid

URL = os.environ.get("EARMARK_URL", "http://127.0.0.1:8080").rstrip("/")
TOKEN = os.environ.get("EARMARK_TOKEN")
PLAIN = "application/vnd.api+json"
ATOMIC = 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"'
FEEDS = ["https://podnews.net/rss", "https://mp3s.nashownotes.com/pc20rss.xml"]


def guid(feed):
    """The podcast GUID of a feed. As an id it makes adding the feed twice harmless."""
    name = feed.split("://", 1)[-1].rstrip("/")
    return str(uuid.uuid5(uuid.UUID("ead4c236-bf58-58c6-a2c6-a6b28d128cb6"), name))


def call(method, path, document=None, media=PLAIN):
    """Returns the response document, or None if it is empty. Raises HTTPError if the server rejects the request."""
    headers = {"Accept": media}
    if document is not None:
        headers["Content-Type"] = media
    # A server without accounts needs no token.
    if TOKEN:
        headers["Authorization"] = f"Bearer {TOKEN}"
    body = None if document is None else json.dumps(document).encode()
    request = urllib.request.Request(URL + path, data=body, headers=headers, method=method)
    with urllib.request.urlopen(request, timeout=30) as response:
        text = response.read()
    return json.loads(text) if text else None


def add(feeds):
    """Adds up to 10,000 feeds. Each has its own result, in the same order: an invalid feed does not affect the others."""
    operations = [
        {"op": "add", "data": {"type": "subscription", "id": guid(feed), "attributes": {"feed_url": feed}}}
        for feed in feeds
    ]
    results = call("POST", "/v1/operations", {"atomic:operations": operations}, ATOMIC)["atomic:results"]
    for feed, result in zip(feeds, results):
        print("added" if "data" in result else result["errors"][0]["code"], feed)


def subscriptions():
    """Yields all subscriptions, page by page."""
    number = 1
    while True:
        page = call("GET", f"/v1/subscriptions?page[number]={number}&page[size]=100")
        yield from page["data"]
        if page["links"]["next"] is None:
            return
        number += 1


def remove(feed):
    try:
        call("DELETE", f"/v1/subscriptions/{guid(feed)}")
        print("removed", feed)
    except urllib.error.HTTPError as error:
        if error.code != 404:
            raise
        print("not found", feed)


try:
    add(FEEDS)
    for subscription in subscriptions():
        attributes = subscription["attributes"]
        print(subscription["id"], attributes["user_subscribed_at"], attributes["feed_url"])
    remove(FEEDS[0])
except urllib.error.HTTPError as error:
    sys.exit(f"{error.code} {error.read().decode()}")
