// The parts of node:fs/promises that src/node.ts uses, so that building the package needs no other package.
interface FileHandle {
  writeFile(text: string): Promise<void>;
  sync(): Promise<void>;
  close(): Promise<void>;
}

export function mkdir(path: string, options: { recursive: true; mode: number }): Promise<string | undefined>;
export function open(path: string, flags: string, mode: number): Promise<FileHandle>;
export function readFile(path: string, encoding: "utf8"): Promise<string>;
export function rename(from: string, to: string): Promise<void>;
