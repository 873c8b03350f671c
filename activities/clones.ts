import { ChainAwayError } from '../src/money/chain/chain-node.js';
import type { ClonePayments } from '../src/agents/clones/clone-payments.js';
import type { CloneStore } from '../src/agents/clones/clone-store.js';
import type { AgentSupervisors } from '../src/agents/operations/supervisors.js';
import { asApplicationFailure } from './failures.js';
import { unchanged } from './watchdog.js';

const RECHECK_MS = 1_000;
const CHAIN_AWAY_MS = 5_000;

export interface CloneActivityDependencies {
  readonly payments: Pick<ClonePayments, 'check'>;
  readonly store: Pick<CloneStore, 'handOver'>;
  readonly supervisors: Pick<AgentSupervisors, 'provision'>;
}

/** Creates the activities that clone agents. Each is idempotent and names the clone by its row. */
export function createCloneActivities({ payments, store, supervisors }: CloneActivityDependencies) {
  return {
    /**
     * Waits until the payment is final; false when the clone must not be created, or no longer. Between two
     * polls Temporal holds the wait, so no worker slot is used.
     */
    awaitClonePayment: (id: string): Promise<boolean> =>
      asApplicationFailure(async () => {
        const state = await readState(id);
        if (state === 'waiting') throw unchanged(RECHECK_MS);
        return state === 'paid';
      }),
    /** Has the clone's supervisor provision the clone, like any other agent. */
    handOverClone: (id: string): Promise<void> =>
      asApplicationFailure(async () => {
        const handed = await store.handOver(id);
        if (handed) await supervisors.provision(handed.agent, handed.operationId);
      }),
  };

  async function readState(id: string) {
    try {
      return await payments.check(id);
    } catch (error) {
      if (error instanceof ChainAwayError) throw unchanged(CHAIN_AWAY_MS, error);
      throw error;
    }
  }
}

export type CloneActivities = ReturnType<typeof createCloneActivities>;
