#!/bin/sh
# Runs Earmark with the Node in this folder, wherever the folder is and whatever links lead here.
root=$(dirname -- "$(readlink -f -- "$0")")
# The option halves memory under load at almost no cost.
exec "$root/node_modules/NODE_PACKAGE/bin/node" --max-semi-space-size=4 "$root/bin/earmark" "$@"
