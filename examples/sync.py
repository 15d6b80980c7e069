"""Keeps your podcast list in a file, in sync with an Earmark server. Works offline. Needs only Python 3.9 or newer.

    export EARMARK_URL=https://pods.example EARMARK_TOKEN=emk_…
    python3 examples/sync.py add URL | remove URL | rename URL TITLE | list | watch
"""

import json
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

URL = os.environ.get("EARMARK_URL", "http://127.0.0.1:8080").rstrip("/")
TOKEN = os.environ.get("EARMARK_TOKEN")
FILE = os.environ.get("EARMARK_FILE", "earmark-list.json")
ATOMIC = 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"'


def request(path, document=None, media="application/vnd.api+json"):
    headers = {"Accept": media, **({"Authorization": f"Bearer {TOKEN}"} if TOKEN else {})}
    if document is not None:
        headers["Content-Type"] = media
    body = None if document is None else json.dumps(document).encode()
    return urllib.request.urlopen(urllib.request.Request(URL + path, body, headers), timeout=45)


def load():
    """The list as the server had it at `state`, by id, and the operations that the server has not confirmed."""
    try:
        with open(FILE) as file:
            return json.load(file)
    except FileNotFoundError:
        return {"state": None, "items": {}, "queue": []}


def save(data):
    with open(FILE + ".new", "w") as file:
        json.dump(data, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(FILE + ".new", FILE)


def sync(data):
    """Sends the edits, then reads what changed. Sending an edit twice is harmless."""
    while batch := data["queue"][:1000]:
        with request("/v1/operations", {"atomic:operations": batch}, ATOMIC) as response:
            for operation, result in zip(batch, json.load(response)["atomic:results"]):
                for error in result.get("errors", []):
                    # A removal on another device wins, and a feed that is already there needs no second subscription.
                    if error["code"] not in ("not-found", "already-subscribed"):
                        print("refused:", operation["op"], error["detail"])
        data["queue"] = data["queue"][len(batch):]
    has_more = True
    while has_more:
        after = {} if data["state"] is None else {"page[after]": data["state"]}
        try:
            with request("/v1/changes?" + urllib.parse.urlencode({**after, "page[size]": 1000})) as response:
                page = json.load(response)
        except urllib.error.HTTPError as error:
            if error.code != 410:
                raise
            # The server no longer knows the state, for example after a restored backup: start from nothing.
            data["state"], data["items"] = None, {}
            continue
        for removed in page["meta"]["removed"]:
            data["items"].pop(removed["id"], None)
        for item in page["data"]:
            data["items"][item["id"]] = item["attributes"]
        data["state"], has_more = page["meta"]["state"], page["meta"]["has_more"]
    save(data)


def edit(data, command, url, *words):
    # The podcast GUID of a feed as its id: two devices that add the same feed offline agree.
    guid = str(uuid.uuid5(uuid.UUID("ead4c236-bf58-58c6-a2c6-a6b28d128cb6"), url.split("://", 1)[-1].rstrip("/")))
    id = next((id for id, item in data["items"].items() if item["feed_url"] == url), guid)
    target = {"type": "subscription", "id": id}
    if command == "remove":
        operation = {"op": "remove", "ref": target}
    elif command == "rename":
        operation = {"op": "update", "data": {**target, "attributes": {"title": " ".join(words) or None}}}
    else:
        operation = {"op": "add", "data": {**target, "attributes": {"feed_url": url}}}
    data["queue"].append(operation)
    save(data)


def show(data):
    for item in data["items"].values():
        print(item["feed_url"], item.get("title", ""), *item.get("folders", []), flush=True)


def refresh(data):
    before = data["state"]
    sync(data)
    if data["state"] != before:
        show(data)


def watch(data):
    """Prints the list after each change on any device: at once by events, or every 5 seconds without."""
    while True:
        try:
            refresh(data)
            with request("/v1/events", media="text/event-stream") as stream:
                for line in stream:
                    if line.startswith(b"data:") and json.loads(line[5:])["subscriptions"] != data["state"]:
                        refresh(data)
        except OSError as error:
            if isinstance(error, urllib.error.HTTPError) and error.code in (401, 403):
                raise
        time.sleep(5)


data = load()
command, *words = sys.argv[1:] or ["list"]
if command in ("add", "remove", "rename") and words:
    edit(data, command, *words)
try:
    sync(data)
except urllib.error.HTTPError as error:
    sys.exit(f"{error.code} {error.read().decode()}")
except urllib.error.URLError as error:
    print(f"offline: {error.reason}. {len(data['queue'])} edits will be sent the next time.", file=sys.stderr)
show(data)
if command == "watch":
    watch(data)
