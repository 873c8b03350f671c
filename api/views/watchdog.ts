import * as z from 'zod';
import { WATCHDOG_CAUSES, WATCHDOG_STATES, crashesWithin } from '../../src/types/watchdog.js';
import type { AgentSettings } from '../../src/agents/lifecycle/settings.js';
import type { AgentRow, WatchdogTransitionRow } from '../../src/platform/database/models.js';

/** The watchdog's view of an agent (decision 17), for both listeners. */
export const watchdogView = z
  .strictObject({
    state: z.enum(WATCHDOG_STATES),
    since: z.iso.datetime(),
    crashesInWindow: z.number().int(),
    repairAttempts: z.number().int().describe('Number of attempts in the last repair'),
    lastRepair: z.iso.datetime().nullable().describe('Time at which the last repair attempt began'),
  })
  .meta({ id: 'Watchdog' });

export const watchdogTransition = z
  .strictObject({
    id: z.string(),
    from: z.enum(WATCHDOG_STATES),
    to: z.enum(WATCHDOG_STATES),
    cause: z.enum(WATCHDOG_CAUSES),
    reason: z.string().nullable(),
    crash: z
      .strictObject({
        exitCode: z.number().int().nullable(),
        oomKilled: z.boolean(),
        lastLines: z.array(z.string()),
      })
      .nullable()
      .describe('Exit of the container, with the end of its log'),
    at: z.iso.datetime(),
  })
  .meta({ id: 'WatchdogTransition' });

/** Returns the watchdog's view of an agent; an agent that never ran shows the initial values. */
export function presentWatchdog(
  agent: AgentRow,
  { watchdog: { crashLoopWindowMs } }: Pick<AgentSettings, 'watchdog'>,
): z.infer<typeof watchdogView> {
  const { watchdog } = agent;
  if (!watchdog) {
    return {
      state: agent.status === 'pending' ? 'starting' : 'stopped',
      since: agent.createdAt.toISOString(),
      crashesInWindow: 0,
      repairAttempts: 0,
      lastRepair: null,
    };
  }
  const { crashes, lastRepair, repairAttempts, since, state } = watchdog;
  return {
    state,
    since: new Date(since).toISOString(),
    crashesInWindow: crashesWithin(crashes, Date.now(), crashLoopWindowMs).length,
    repairAttempts,
    lastRepair: lastRepair === null ? null : new Date(lastRepair).toISOString(),
  };
}

export function presentTransition(row: WatchdogTransitionRow): z.infer<typeof watchdogTransition> {
  return {
    id: row.id,
    from: row.fromState,
    to: row.toState,
    cause: row.cause,
    reason: row.reason,
    crash: row.crash && { ...row.crash, lastLines: [...row.crash.lastLines] },
    at: row.at.toISOString(),
  };
}
