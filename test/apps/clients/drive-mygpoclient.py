"""Drives mygpoclient: reads `[method, arguments]` per line and writes what the method returns, or what it raises."""

import json
import sys

from mygpoclient import api

client = api.MygPodderClient(*sys.argv[1:4])

for line in sys.stdin:
    method, arguments = json.loads(line)
    if method == "upload_episode_actions":
        arguments = [[api.EpisodeAction.from_dictionary(action) for action in arguments[0]]]
    try:
        answer = {"value": getattr(client, method)(*arguments)}
    except Exception as error:
        answer = {"error": repr(error)}
    print(json.dumps(answer, default=vars), flush=True)
