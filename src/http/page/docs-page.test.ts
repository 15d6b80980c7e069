import assert from "node:assert/strict";
import { test } from "node:test";
import { startServer } from "../../../test/support/server.ts";

const serverUrlOf = (json: { readonly servers: readonly { readonly url: string }[] }) => json.servers[0]?.url;

test("openapi.json: host, port and base path of the request → server URL", async () => {
  const { call, url } = await startServer({
    EARMARK_BASE_PATH: "/pods",
    EARMARK_ALLOWED_HOSTS: "pods.example",
    EARMARK_TRUSTED_PROXIES: "127.0.0.1",
  });
  const direct = await call("GET", "/pods/openapi.json");
  assert.equal(direct.headers["content-type"], "application/json");
  assert.equal(serverUrlOf(direct.json), `${url}/pods`);
  const named = await call("GET", "/pods/openapi.json", { headers: { Host: "pods.example:8443" } });
  assert.equal(serverUrlOf(named.json), "http://pods.example:8443/pods");
  const proxied = await call("GET", "/openapi.json", {
    headers: { "X-Forwarded-For": "192.0.2.1", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "pods.example" },
  });
  assert.equal(serverUrlOf(proxied.json), "https://pods.example/pods");
});

test("openapi.json, /docs: many server URLs, one after the other and at once → each its own document", async () => {
  const { call } = await startServer({ EARMARK_ALLOWED_HOSTS: "pods.example" });
  const hosts = Array.from({ length: 40 }, (_, index) => `pods.example:${8_000 + index}`);
  const read = async (host: string) => {
    const headers = { Host: host };
    assert.equal(serverUrlOf((await call("GET", "/openapi.json", { headers })).json), `http://${host}`);
    assert.ok((await call("GET", "/docs", { headers })).text.includes(`http://${host}/v1/subscriptions`));
  };
  for (const host of [...hosts, ...hosts.toReversed()]) await read(host);
  await Promise.all(hosts.map(read));
});

test("openapi.json: host with unusual characters → not echoed", async () => {
  const { call } = await startServer({ EARMARK_ACCOUNTS: "true", EARMARK_TRUSTED_PROXIES: "127.0.0.1" });
  for (const path of ["/openapi.json", "/docs"]) {
    const { status, text } = await call("GET", path, {
      headers: { "X-Forwarded-For": "192.0.2.1", "X-Forwarded-Host": 'x"><script>' },
    });
    assert.equal(status, 200);
    assert.doesNotMatch(text, /<script/);
    assert.match(text, /http:\/\/127\.0\.0\.1:8080/);
  }
});

test("/docs: page → every link works, no scripts, one style sheet", async () => {
  const { call } = await startServer();
  const { text, headers } = await call("GET", "/docs");
  assert.equal(headers["content-type"], "text/html; charset=utf-8");
  assert.equal(
    headers["content-security-policy"],
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  );
  assert.doesNotMatch(text, /<script|<style|\sstyle=|\son\w+=|javascript:|<img|<iframe|<form/i);
  const ids = [...text.matchAll(/\sid="([^"]*)"/g)].map(([, id = ""]) => id);
  assert.equal(new Set(ids).size, ids.length, "duplicate id");
  const links = [...text.matchAll(/\shref="([^"]*)"/g)].map(([, link = ""]) => link);
  assert.ok(links.length > 30);
  for (const link of links) {
    if (link.startsWith("#")) assert.ok(ids.includes(link.slice(1)), link);
    else if (!link.startsWith("https:")) assert.equal((await call("GET", `/${link}`)).status, 200, link);
  }
  const style = await call("GET", "/docs.css");
  assert.equal(style.headers["content-type"], "text/css; charset=utf-8");
  assert.doesNotMatch(style.text, /url\(|@import/);
});
