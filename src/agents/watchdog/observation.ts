import type { DeathCause, PastTransition } from '../../types/watchdog.js';

/** The container health statuses of the contract (section 3). */
export type ContainerHealth = 'healthy' | 'starting' | 'stopped' | 'unhealthy';

/** What was seen of an agent's container, and when. */
export interface Observation {
  readonly health: ContainerHealth;
  /** Why it is not healthy, in a sentence for people. */
  readonly reason: string | null;
  /** How the container came to its end, when it is `stopped`. */
  readonly death?: DeathCause;
  /** ISO 8601. */
  readonly observedAt: string;
  /** What the agent's host did by itself, oldest first, until its supervisor has taken that in. */
  readonly past?: readonly PastTransition[];
}
