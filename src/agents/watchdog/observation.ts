import type { DeathCause, PastTransition } from '../../types/watchdog.js';

/** The container health states of spec 3. */
export type ContainerHealth = 'healthy' | 'starting' | 'stopped' | 'unhealthy';

export interface Observation {
  readonly health: ContainerHealth;
  /** The reason for not being healthy, as a readable sentence. */
  readonly reason: string | null;
  readonly death?: DeathCause;
  /** ISO 8601. */
  readonly observedAt: string;
  /**
   * Transitions that the agent's host made by itself, oldest first, until its supervisor has processed them.
   */
  readonly past?: readonly PastTransition[];
}
