"""Drives the sync class of gPodder without its window: reads `[method, arguments]` per line, like drive-mygpoclient.py."""

import json
import sys
from types import SimpleNamespace

import gpodder

user, password, server, folder = sys.argv[1:5]
gpodder.set_home(folder)

from gpodder import config, my, opml  # noqa: E402 (needs the home folder)

settings = config.Config(gpodder.config_file)
settings.mygpo.username = user
settings.mygpo.password = password
settings.mygpo.server = server
settings.mygpo.device.uid = "desk"
settings.mygpo.device.caption = "gPodder on desk"
settings.mygpo.enabled = True


class Client(my.MygPoClient):
    def synchronize(self):
        """What gPodder does a minute after a change. Every step that fails leaves its queue as it is."""
        self._worker_proc(forced=True)
        kinds = (my.UpdateDeviceAction, my.SubscribeAction, my.EpisodeAction)
        return {
            "enabled": settings.mygpo.enabled,
            "queued": sum(len(self._store.load(kind)) for kind in kinds),
            "received": [[a.is_add, a.url] for a in self.get_received_actions()],
            "rewritten": [[u.old_url, u.new_url] for u in self.get_rewritten_urls()],
        }

    def confirm(self):
        self.confirm_received_actions(self.get_received_actions())

    def play(self, podcast, episode, numbers=None):
        what = SimpleNamespace(url=episode, channel=SimpleNamespace(url=podcast))
        if numbers is None:
            self.on_playback([what])
        else:
            self.on_playback_full(what, *numbers)

    def delete(self, podcast, episode):
        self.on_delete([SimpleNamespace(url=episode, channel=SimpleNamespace(url=podcast))])

    def positions(self):
        """Applies received actions to episodes as the main window does."""
        episodes = {}

        def find(podcast, url):
            new = SimpleNamespace(url=url, current_position=0, current_position_updated=0, total_time=0)
            new.mark = lambda is_played: None
            new.save = lambda: None
            new.was_downloaded = lambda and_exists: False
            new.delete_from_disk = lambda: None
            return episodes.setdefault(url, new)

        self.process_episode_actions(find)
        return {url: episode.current_position for url, episode in episodes.items()}

    def restore(self):
        return [item["url"] for item in opml.Importer(self.get_download_user_subscriptions_url()).items]


client = Client(settings)
for line in sys.stdin:
    method, arguments = json.loads(line)
    try:
        answer = {"value": getattr(client, method)(*arguments)}
    except Exception as error:
        answer = {"error": repr(error)}
    print(json.dumps(answer), flush=True)
