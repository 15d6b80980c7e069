/** How to connect an app. Names of menus, fields and buttons are those of the app in English. */
export interface SetupMethod {
  /** How to find the dialog. */
  readonly menu: readonly string[];
  /** The field for the URL of the server. */
  readonly server: string;
  /** The fields for username and password; without them the app opens the browser. */
  readonly credentials?: readonly [user: string, password: string];
  /** A field that the user must invent a value for, with an example. */
  readonly device?: readonly [field: string, example: string];
  /** To be pressed afterwards. */
  readonly buttons: readonly string[];
  /** Usernames that the app refuses. */
  readonly refusedName?: RegExp;
}

export interface Guide {
  readonly name: string;
  /** Recognizes the app's `User-Agent`. */
  readonly agent?: RegExp;
  readonly methods: readonly [SetupMethod, ...SetupMethod[]];
}

const USER_AND_PASSWORD = ["Username", "Password"] as const;
const SYNCHRONIZATION = ["Settings", "Synchronization"];

export const GUIDES: readonly Guide[] = [
  {
    name: "AntennaPod",
    agent: /AntennaPod/,
    methods: [
      {
        menu: [...SYNCHRONIZATION, "Choose synchronization provider", "Gpodder.net"],
        server: "Server address",
        credentials: USER_AND_PASSWORD,
        buttons: ["Log in", "Create device"],
        refusedName: /[!@#$%&*()+=|<>?{}[\]~]/,
      },
      {
        menu: [...SYNCHRONIZATION, "Choose synchronization provider", "Gpodder Sync (Nextcloud)"],
        server: "Server address",
        buttons: ["Proceed to login"],
      },
    ],
  },
  {
    name: "Kasts",
    agent: /Kasts/,
    methods: [
      {
        menu: [...SYNCHRONIZATION, "Login", "gpodder.net", "Use custom server"],
        server: "Hostname",
        credentials: USER_AND_PASSWORD,
        buttons: ["OK", "Create Device"],
      },
    ],
  },
  {
    name: "gPodder",
    agent: /gPodder|mygpoclient/,
    methods: [
      {
        menu: ["Preferences", "gpodder.net", "Synchronize subscriptions and episode actions"],
        server: "Server",
        credentials: USER_AND_PASSWORD,
        buttons: [],
      },
    ],
  },
  {
    name: "Cardo",
    agent: /cardo|tauri/i,
    methods: [
      {
        menu: SYNCHRONIZATION,
        server: "Gpodder Server URL",
        credentials: ["User", "Password"],
        buttons: ["Connect", "Create a new device", "Finish"],
      },
      { menu: SYNCHRONIZATION, server: "URL of Nextcloud server", buttons: ["Connect"] },
    ],
  },
  {
    name: "Podcini.X",
    agent: /Podcini/,
    methods: [
      {
        menu: ["Settings", "Network and Storage", "Synchronization", "Choose synchronization provider"],
        server: "Server address",
        buttons: ["Proceed to login"],
      },
    ],
  },
  {
    name: "Music Assistant",
    agent: /Music ?Assistant/,
    methods: [
      {
        menu: ["Settings", "Providers", "gPodder", "gpodder / opodsync server"],
        server: "gPodder Service URL",
        credentials: USER_AND_PASSWORD,
        device: ["Device ID", "music-assistant"],
        buttons: [],
      },
      {
        menu: ["Settings", "Providers", "gPodder", "Nextcloud (nextcloud-gpodder)"],
        server: "Nextcloud URL",
        buttons: [],
      },
    ],
  },
  {
    name: "PinePods",
    agent: /PinePods/,
    methods: [
      {
        menu: ["Settings", "Podcast Sync", "External GPodder Server"],
        server: "Server URL",
        credentials: USER_AND_PASSWORD,
        buttons: ["Authenticate"],
      },
      {
        menu: ["Settings", "Podcast Sync", "Nextcloud"],
        server: "Nextcloud Server URL",
        buttons: ["Authenticate"],
      },
    ],
  },
  {
    name: "YourPods",
    agent: /YourPods/,
    methods: [
      { menu: ["Add Account"], server: "Nextcloud URL", credentials: USER_AND_PASSWORD, buttons: ["Save & Sync"] },
    ],
  },
  {
    name: "Kodi",
    agent: /Kodi/,
    methods: [
      {
        menu: ["RSS Podcasts", "Settings", "Provider", "gPodder.net"],
        server: "Hostname",
        credentials: USER_AND_PASSWORD,
        buttons: ["Apply changes"],
      },
    ],
  },
];

/** The name of the app that sends this `User-Agent`; undefined if it is not a known app. */
export function findAppName(userAgent: string | null): string | undefined {
  return userAgent === null ? undefined : GUIDES.find(({ agent }) => agent?.test(userAgent))?.name;
}
