import * as z from 'zod';
import { isCrashLoop, WATCHDOG_CAUSES, WATCHDOG_STATES } from '../../types/watchdog.js';

/** Maximum number of changes kept for one agent until its supervisor has read them; older ones are dropped. */
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

export const journalEntry = z.object({
  agentId: z.string(),
  userId: z.string(),
  /** The container that last ran well; no other container is started. */
  containerId: z.string(),
  /** Volumes without which the container is not started. */
  volumes: z.array(z.string()).readonly(),
  /**
   * `killed`, `started`: should run, in a repair attempt. `held`: stopped, or being changed by an operation.
   */
  phase: z.enum(['running', 'killed', 'started', 'held']),
  memory,
  /** Local changes not yet read by a supervisor, oldest first. */
  past: z.array(past).readonly(),
});

export type JournalEntry = Readonly<z.infer<typeof journalEntry>>;

export function withPast(entry: JournalEntry, made: JournalEntry['past'][number]): JournalEntry {
  return { ...entry, memory: made.memory, past: [...entry.past, made].slice(-MAX_PAST) };
}

/**
 * Reports whether the agent should be started again after its container ended. `awayFrom`, in Unix
 * milliseconds: start of Docker's last absence.
 */
export function shouldRun({ phase, memory }: JournalEntry, awayFrom: number): boolean {
  return phase !== 'held' && memory.state !== 'stopped' && !isCrashLoop(memory, awayFrom);
}
