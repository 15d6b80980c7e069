/** Calls `apply` once with the requested changes that were not refused. Result N belongs to requested change N. */
export async function applyAccepted<Requested extends object, Refused extends Requested, Result>(
  requested: readonly Requested[],
  isRefused: (change: Requested) => change is Refused,
  apply: (accepted: Exclude<Requested, Refused>[]) => Promise<readonly Result[]>,
): Promise<(Result | Refused)[]> {
  const accepted = requested.filter((change): change is Exclude<Requested, Refused> => !isRefused(change));
  const results = accepted.length === 0 ? [] : await apply(accepted);
  if (results.length !== accepted.length) throw new Error(`${results.length} results for ${accepted.length} changes`);
  let next = 0;
  return requested.map((change) => (isRefused(change) ? change : (results[next++] as Result)));
}
