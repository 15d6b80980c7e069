#!/bin/sh
# Adds two feeds to an Earmark server, lists them, and removes one.
#
#   EARMARK_URL=https://pods.example EARMARK_TOKEN=emk_… sh examples/curl.sh
set -eu

url=${EARMARK_URL:-http://127.0.0.1:8080}
atomic='application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"'

# Passes the token through standard input, because other users of the machine can see arguments. A server without
# accounts needs no token.
call() {
  printf '%s\n' "${EARMARK_TOKEN:+header = \"Authorization: Bearer $EARMARK_TOKEN\"}" |
    curl --config - --silent --show-error --fail-with-body --globoff "$@"
  echo
}

# Each operation has its own result, in the same order: "data" if the feed was added, "errors" if not. You choose the
# ids; these are the podcast GUIDs of the feeds, so that adding them twice is harmless.
call "$url/v1/operations" --header "Content-Type: $atomic" --data '{
  "atomic:operations": [
    { "op": "add", "data": { "type": "subscription", "id": "9b024349-ccf0-5f69-a609-6b82873eab3c",
                             "attributes": { "feed_url": "https://podnews.net/rss" } } },
    { "op": "add", "data": { "type": "subscription", "id": "917393e3-1b1e-5cef-ace4-edaa54e1f810",
                             "attributes": { "feed_url": "https://mp3s.nashownotes.com/pc20rss.xml" } } }
  ]
}'

# The first page. "links.next" is the path of the next page, or null on the last.
call "$url/v1/subscriptions?page[size]=100"

# Returns 204, or 404 if there is no subscription with this id.
call "$url/v1/subscriptions/9b024349-ccf0-5f69-a609-6b82873eab3c" --request DELETE
