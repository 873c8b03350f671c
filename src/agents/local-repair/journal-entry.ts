import * as z from 'zod';
import { isCrashLoop, WATCHDOG_CAUSES, WATCHDOG_STATES } from '../../types/watchdog.js';

/** Changes that are kept of one agent until its supervisor knows them; older ones go. */
const MAX_PAST = 60;

const memory = z.object({
  version: z.number(),
  state: z.enum(WATCHDOG_STATES),
  since: z.number(),
  crashes: z.array(z.number()).readonly(),
  repairAttempts: z.number(),
  lastRepair: z.number().nullable(),
});

const past = z.object({
  id: z.string(),
  from: z.enum(WATCHDOG_STATES),
  cause: z.enum(WATCHDOG_CAUSES),
  reason: z.string().nullable(),
  memory,
  crash: z.object({ exitCode: z.number().nullable(), oomKilled: z.boolean() }).optional(),
});

/** As it stands in its file. */
export const journalEntry = z.object({
  agentId: z.string(),
  userId: z.string(),
  /** The container that was seen to run well: no other one is started. */
  containerId: z.string(),
  /** The volumes that were mounted in it: without them it is not started. */
  volumes: z.array(z.string()).readonly(),
  /**
   * `running`: should run. `killed` and `started`: the same, and how far the attempt at a repair is.
   * `held`: it was stopped, or an operation is changing it.
   */
  phase: z.enum(['running', 'killed', 'started', 'held']),
  memory,
  /** What was done here by itself and no supervisor knows yet, oldest first. */
  past: z.array(past).readonly(),
});

/** What a host's worker knows of one agent without asking anybody. */
export type JournalEntry = Readonly<z.infer<typeof journalEntry>>;

/** The entry after one more change was made here. */
export function withPast(entry: JournalEntry, made: JournalEntry['past'][number]): JournalEntry {
  return { ...entry, memory: made.memory, past: [...entry.past, made].slice(-MAX_PAST) };
}

/**
 * Whether the agent is to be brought up when its container has ended.
 *
 * @param awayFrom Unix milliseconds since when Docker was away last.
 */
export function shouldRun({ phase, memory }: JournalEntry, awayFrom: number): boolean {
  return phase !== 'held' && memory.state !== 'stopped' && !isCrashLoop(memory, awayFrom);
}
