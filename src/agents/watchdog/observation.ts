import type { DeathCause, PastTransition } from '../../types/watchdog.js';

/** The container health states of the contract (section 3). */
export type ContainerHealth = 'healthy' | 'starting' | 'stopped' | 'unhealthy';

/** An observed state of an agent's container, with its time. */
export interface Observation {
  readonly health: ContainerHealth;
  /** The reason for not being healthy, as a readable sentence. */
  readonly reason: string | null;
  /** The cause of the container's end, if it is `stopped`. */
  readonly death?: DeathCause;
  /** Time of the observation, ISO 8601. */
  readonly observedAt: string;
  /**
   * Transitions that the agent's host made by itself, oldest first, until its supervisor has processed
   * them.
   */
  readonly past?: readonly PastTransition[];
}
