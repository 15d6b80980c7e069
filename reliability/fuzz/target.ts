import type { Material } from "./mutate.ts";

/** A reader of what strangers send, and how to tell whether it read it right. */
export interface Target {
  readonly name: string;
  /** Inputs to begin with. */
  readonly seeds: readonly string[];
  /** Pieces that mean something to the reader. */
  readonly words: readonly string[];
  /** Whether a character stands for a byte. */
  readonly isBytes: boolean;
  readonly maxLength: number;
  /** Parts of the paths of its code: what is reached there for the first time is worth keeping. */
  readonly watches: readonly string[];
  /**
   * Throws when the reader did anything but what it should. Gives the kind of the outcome: an input of a kind that was
   * not there before is worth keeping too.
   */
  check(input: string): string | Promise<string>;
  /** Variants that follow the form of the input, where it has one. */
  mutate?(input: string, material: Material): string;
  close?(): Promise<void>;
}
