import { useState } from "preact/hooks";
import { accountMode, serverUrl } from "../server/server.ts";
import { useWords } from "../words/index.ts";
import { ConnectApp } from "./connect-app.tsx";
import { Devices, useDevices } from "./devices.tsx";
import { Tokens } from "./tokens.tsx";

export function AppsView() {
  const { apps } = useWords();
  const all = useDevices({ polls: true });
  const [createdTokens, setCreatedTokens] = useState(0);
  // An app that the user has just allowed has a new token.
  const tokensVersion = `${createdTokens} ${all.devices?.map(({ id }) => id).join()}`;
  return (
    <>
      <div class="page-head">
        <h1>{apps.title}</h1>
      </div>
      <p class="muted">{apps.lead}</p>
      <ConnectApp devices={all.devices} onCreateToken={() => setCreatedTokens((count) => count + 1)} />
      <Devices {...all} />
      {accountMode !== "off" && <Tokens version={tokensVersion} />}
      <p class="muted">
        {apps.developers} <a href={`${serverUrl}/docs`}>{apps.readApi}</a>
      </p>
    </>
  );
}
