/** Values that could not be stored. */
const memory = new Map<string, string>();

/** Strings stored in this browser and shared by its tabs. Without storage, they last until the page is closed. */
export const storage = {
  get(name: string): string | null {
    const saved = memory.get(name);
    if (saved !== undefined) return saved;
    try {
      return localStorage.getItem(`earmark:${name}`);
    } catch {
      return null;
    }
  },
  set(name: string, value: string | null): void {
    memory.delete(name);
    try {
      if (value === null) localStorage.removeItem(`earmark:${name}`);
      else localStorage.setItem(`earmark:${name}`, value);
    } catch {
      // Blocked or full.
      if (value !== null) memory.set(name, value);
    }
  },
  /** Calls the listener when another tab has changed the text. */
  watch(name: string, listener: () => void): void {
    addEventListener("storage", ({ key }) => {
      if (key === null || key === `earmark:${name}`) listener();
    });
  },
};
