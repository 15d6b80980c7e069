import { useWords } from "../words/index.ts";

/** Where each app has its OPML export, in the words of its English version; undefined if it has none. */
const EXPORTS: readonly (readonly [app: string, menu: readonly string[] | undefined])[] = [
  ["AntennaPod", ["Settings", "Import/Export", "OPML export"]],
  ["Apple Podcasts", undefined],
  ["gPodder", ["Subscriptions", "Export to OPML file"]],
  ["Kasts", ["Subscriptions", "Export Podcasts…"]],
  ["Overcast", ["Settings", "Export OPML"]],
  ["Pocket Casts", ["Profile", "Settings", "Import & export OPML"]],
  ["Podcast Addict", ["Settings", "Backup/Restore"]],
];

export function ExportGuides() {
  const { apps, appLogin, exportGuides } = useWords();
  return (
    <details class="exports">
      <summary>{exportGuides.title}</summary>
      <table>
        <thead>
          <tr>
            <th scope="col">{appLogin.app}</th>
            <th scope="col">{exportGuides.where}</th>
          </tr>
        </thead>
        <tbody>
          {EXPORTS.map(([app, menu]) => (
            <tr key={app}>
              <th scope="row">{app}</th>
              <td>{menu === undefined ? exportGuides.none : <bdi lang="en">{menu.join(" › ")}</bdi>}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="muted">{apps.menuNote}</p>
    </details>
  );
}
