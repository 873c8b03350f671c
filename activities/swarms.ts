import type { OwnerTurns } from '../src/agents/chat/owner-turns.js';
import type { HostLimiters } from '../src/agents/watchdog/host-limiters.js';
import type { SwarmStore } from '../src/swarms/swarm-store.js';
import { asApplicationFailure } from './failures.js';
import { askInTurn, endLostTurn } from './owner-turns.js';

type Store = Pick<SwarmStore, 'begin' | 'finish' | 'question' | 'settle'>;

/** Creates the activities that only read and write rows of swarms. */
export const createSwarmRecordActivities = (store: Store, turns: Pick<OwnerTurns, 'endOf'>) => ({
  beginSwarm: (id: string) => asApplicationFailure(() => store.begin(id)),
  settleSwarm: (id: string) => asApplicationFailure(() => store.settle(id)),
  /** Ends a turn that its host did not carry out. */
  endSwarmTurn: endLostTurn(turns, store),
});

export type SwarmRecordActivities = ReturnType<typeof createSwarmRecordActivities>;

interface HostParts {
  readonly turns: Pick<OwnerTurns, 'ask'>;
  readonly limiters: Pick<HostLimiters, 'turns'>;
  readonly store: Store;
}

/** Creates the activity that sends a question to a member or the coordinator; runs on the agent's host. */
export const createSwarmTurnActivities = ({ store, ...parts }: HostParts) => ({
  askSwarmAgent: askInTurn(parts, store),
});

export type SwarmTurnActivities = ReturnType<typeof createSwarmTurnActivities>;
