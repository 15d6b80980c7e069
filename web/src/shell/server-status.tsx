import { createAdminClient, type ServerStatus } from "../../../client/src/admin.ts";
import { accountMode, currentUser, SIGNED_IN } from "../server/server.ts";
import { useValue } from "../state/state.ts";
import { ErrorMessage } from "../ui/error-message.tsx";
import { explainError } from "../ui/errors.ts";
import { useLoaded } from "../ui/requests.ts";
import { format, formatAge, formatNumber, getLanguage, useWords } from "../words/index.ts";
import "../styles/server.css";

const admin = createAdminClient(SIGNED_IN);
const ENGINES = { sqlite: "SQLite", postgresql: "PostgreSQL", citus: "PostgreSQL, Citus" } as const;
const HOUR_MS = 60 * 60_000;
/** As for `earmark doctor`: one failed nightly backup is not worth mentioning, two in a row are. */
const OLD_BACKUP_MS = 48 * HOUR_MS;

/** For administrators; on a server without accounts for everyone. */
export function ServerView() {
  const { server: words, administration } = useWords();
  const isAdmin = useValue(currentUser)?.role === "administrator" || accountMode === "off";
  return (
    <>
      <h1>{words.title}</h1>
      {isAdmin ? <Status /> : <p>{administration.errors["admin-required"]}</p>}
    </>
  );
}

function Status() {
  const { server: words, loading } = useWords();
  const { value: status, failure, load } = useLoaded(() => admin.server(), []);
  if (failure !== undefined) return <ErrorMessage text={explainError(failure)} onAction={load} />;
  if (status === undefined) return <p class="muted">{loading}</p>;
  const { lastBackupAt } = status;
  const isBackedUp = lastBackupAt !== null && Date.now() - lastBackupAt.getTime() < OLD_BACKUP_MS;
  return (
    <>
      <p class="muted">{words.lead}</p>
      <dl class="facts">
        {factsOf(status).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {!isBackedUp && <p class="message">{format(words.backupHint, { command: "earmark backup" })}</p>}
      <p class="muted">{format(words.checks, { command: "earmark doctor" })}</p>
    </>
  );
}

function factsOf(status: ServerStatus): (readonly [name: string, value: string])[] {
  const { server: words } = useWords();
  const { database, lastBackupAt, accounts, podcasts } = status;
  const size = database.bytes === null ? "" : ` · ${formatBytes(database.bytes)}`;
  return [
    [words.version, format(words.runsOn, { version: status.version, node: status.nodeVersion })],
    [words.since, formatAge(status.startedAt)],
    [words.database, `${ENGINES[database.engine]} ${database.version}${size}`],
    [words.lastBackup, lastBackupAt === null ? words.never : formatAge(lastBackupAt)],
    ...(accounts === null ? [] : [[words.accounts, formatNumber(accounts)] as const]),
    [words.subscriptions, formatNumber(status.subscriptions)],
    ...(podcasts === null
      ? []
      : ([
          [words.podcasts, formatNumber(podcasts.known)],
          [words.due, formatNumber(podcasts.due)],
          [
            words.failing,
            podcasts.failing === 0
              ? formatNumber(0)
              : format(words.failingDetails, {
                  n: podcasts.failing,
                  forbidden: podcasts.forbidden,
                  gone: podcasts.gone,
                }),
          ],
        ] as const)),
  ];
}

const UNITS = ["kilobyte", "megabyte", "gigabyte", "terabyte"] as const;

function formatBytes(bytes: number): string {
  const power = Math.min(UNITS.length, Math.max(1, Math.floor(Math.log10(Math.max(1, bytes)) / 3)));
  const unit = UNITS[power - 1];
  return new Intl.NumberFormat(getLanguage(), { style: "unit", unit, maximumFractionDigits: 1 }).format(
    bytes / 1_000 ** power,
  );
}
