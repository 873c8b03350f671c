import type { DeathCause, PastTransition } from '../../types/watchdog.js';

/** The container health states of spec 3. */
export type ContainerHealth = 'healthy' | 'starting' | 'stopped' | 'unhealthy';

/** In Unix milliseconds. */
export interface EndedAway {
  /** Start of Docker's absence; 0 if the time before is unknown. */
  readonly from: number;
  /** By Docker's clock. */
  readonly endedAt: number;
}

export interface Observation {
  readonly health: ContainerHealth;
  /** The reason for not being healthy, as a readable sentence. */
  readonly reason: string | null;
  readonly death?: DeathCause;
  /** The container ended within this absence of Docker, so it did not crash. */
  readonly away?: EndedAway;
  /** ISO 8601. */
  readonly observedAt: string;
  /**
   * Transitions that the agent's host made by itself, oldest first, until its supervisor has processed them.
   */
  readonly past?: readonly PastTransition[];
}
