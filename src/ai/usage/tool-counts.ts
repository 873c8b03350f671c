import * as z from 'zod';
import { sanitizeForJsonb } from '../../lib/well-formed.js';

const count = z.number().int().min(0);

/** Calls of one tool in an answer, and results that the request of the answer carried. */
const toolCount = z.object({
  name: z.string().min(1).max(128),
  calls: count,
  /** Results, those of them that are no failures, and milliseconds from the calls to the results. */
  completed: count,
  successes: count,
  ms: count,
});

export const toolCounts = z.array(toolCount);

export type ToolCount = z.output<typeof toolCount>;

const MAX_NAME_LENGTH = 128;

/** Maximum number of names of one record. The calls of further ones are counted under one name. */
const MAX_NAMES = 128;
const OTHER = '(other)';

/** Returns the name under which a tool is counted, or undefined for a name that is none. */
export function countedName(name: unknown): string | undefined {
  if (typeof name !== 'string' || name === '') return undefined;
  // A cut may split a surrogate pair, which the database rejects.
  return sanitizeForJsonb(name.slice(0, MAX_NAME_LENGTH).replace(/[\ud800-\udbff]$/, ''));
}

/** Sums of a record, by the name of the tool. */
export class ToolSums {
  readonly #sums = new Map<string, ToolCount>();

  add(name: string, more: Partial<Omit<ToolCount, 'name'>>): void {
    const known = this.#sums.has(name) || this.#sums.size < MAX_NAMES ? name : OTHER;
    const { calls, completed, ms, successes } = this.#sums.get(known) ?? NONE;
    this.#sums.set(known, {
      name: known,
      calls: calls + (more.calls ?? 0),
      completed: completed + (more.completed ?? 0),
      successes: successes + (more.successes ?? 0),
      ms: ms + (more.ms ?? 0),
    });
  }

  /** Returns as many sums as fit into so many bytes of JSON. */
  list(maxBytes = Infinity): ToolCount[] {
    let bytes = 0;
    return [...this.#sums.values()].filter((sum) => {
      if (maxBytes === Infinity) return true;
      bytes += Buffer.byteLength(JSON.stringify(sum)) + 1;
      return bytes <= maxBytes;
    });
  }
}

const NONE = { calls: 0, completed: 0, successes: 0, ms: 0 };
