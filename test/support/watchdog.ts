import { isDeepStrictEqual } from 'node:util';
import type { WatchdogState } from '../../src/types/watchdog.js';
import { superviseAgentId } from '../../workflows/ids.js';
import { AGENT_PHASE } from '../../workflows/search-attributes.js';
import { until } from './until.js';
import type { TestPlatform, TestUser } from './platform.js';

/** A watchdog state change as the API shows it. */
export interface ShownChange {
  readonly from: string;
  readonly to: string;
  readonly cause: string;
  readonly reason: string | null;
  readonly at: string;
  readonly crash: {
    readonly exitCode: number | null;
    readonly oomKilled: boolean;
    readonly lastLines: readonly string[];
  } | null;
}

/** An agent's watchdog as its owner sees it. */
export interface Shown {
  /** Waits for a change that matches. */
  change(agentId: string, isMeant: (change: ShownChange) => boolean): Promise<ShownChange>;
  /** Waits until the watchdog is in this state; use `change` for a state that may last a moment. */
  becomes(agentId: string, state: WatchdogState): Promise<void>;
  /** Returns all changes since the agent first ran, oldest first: from, to, cause. */
  life(agentId: string): Promise<string[][]>;
}

/** A repair takes 35 s, and more on a busy machine. */
const TIMEOUT_MS = 120_000;

export function shownBy(platform: TestPlatform, user: TestUser): Shown {
  const changes = async (listener: 'web' | 'backend', agentId: string): Promise<ShownChange[]> => {
    const { body } = await platform[listener](user, 'GET', `/api/agents/${agentId}/operations`);
    return body.transitions.toReversed();
  };
  return {
    change: (agentId, isMeant) =>
      until(async () => (await changes('backend', agentId)).find(isMeant), TIMEOUT_MS),
    async becomes(agentId, state) {
      await until(async () => {
        const { body } = await platform.backend(user, 'GET', `/api/agents/${agentId}`);
        return body.watchdog.state === state;
      }, TIMEOUT_MS);
    },
    async life(agentId) {
      // A change between the two reads makes them differ once.
      const all = await until(async () => {
        const [seen, onWeb] = [
          await changes('backend', agentId),
          await changes('web', agentId),
        ] as const;
        return isDeepStrictEqual(onWeb, seen) && seen;
      });
      return all
        .slice(all.findIndex(({ to }) => to === 'running') + 1)
        .map(({ from, to, cause }) => [from, to, cause]);
    },
  };
}

/**
 * Waits until the first health check since the agent started is done: the next one follows after the
 * interval.
 */
export async function firstCheckIsMade(platform: TestPlatform, agentId: string): Promise<void> {
  const handle = platform.temporal.client.workflow.getHandle(superviseAgentId(agentId));
  await until(async () => {
    const { raw } = await handle.describe();
    return raw.pendingActivities?.some(
      ({ activityType, attempt }) => activityType?.name === 'watchHealth' && (attempt ?? 0) > 1,
    );
  });
}

/** Waits until the supervisor's search attribute shows this phase. */
export async function phaseBecomes(
  platform: TestPlatform,
  agentId: string,
  phase: string,
): Promise<void> {
  const handle = platform.temporal.client.workflow.getHandle(superviseAgentId(agentId));
  await until(async () => {
    const { typedSearchAttributes } = await handle.describe();
    return typedSearchAttributes.get(AGENT_PHASE) === phase;
  });
}
