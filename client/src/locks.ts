/** Runs one task at a time per name. */
export function createLock(): <Value>(name: string, task: () => Promise<Value>) => Promise<Value> {
  const last = new Map<string, Promise<unknown>>();
  return (name, task) => {
    const running = Promise.resolve(last.get(name)).then(task, task);
    last.set(name, running);
    return running;
  };
}
