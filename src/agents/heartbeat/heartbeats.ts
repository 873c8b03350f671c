import type { TenantDatabase } from '../../platform/database/database.js';
import type { HeartbeatRow } from '../../platform/database/models.js';
import { frequencyMs } from './frequency.js';

/** Disabled until the user enables it, because every heartbeat costs tokens. */
export const DEFAULT_HEARTBEAT = { frequency: '3h', enabled: false } as const;

/** Every change of a user's setting sets a new `updatedAt`. */
export type HeartbeatSetting = Pick<HeartbeatRow, 'userId' | 'frequency' | 'enabled' | 'updatedAt'>;

export type Heartbeat = Pick<HeartbeatRow, 'frequency' | 'enabled' | 'lastHeartbeatAt'> & {
  /** Null until the user has changed the setting. */
  readonly updatedAt: Date | null;
};

/** Keeps heartbeats in step with the settings. Calls are idempotent. */
export interface HeartbeatScheduler {
  /** @throws UnavailableError if the scheduler does not answer; the change may have been applied. */
  apply(heartbeat: HeartbeatSetting): Promise<void>;
}

export async function readHeartbeat(tenant: TenantDatabase, userId: string): Promise<Heartbeat> {
  const row = await tenant.transaction((db) => db.Heartbeat.findByPk(userId));
  return row ?? { ...DEFAULT_HEARTBEAT, lastHeartbeatAt: null, updatedAt: null };
}

/** Returns the Unix milliseconds from which heartbeats are counted, in the whole seconds of schedules. */
export function anchorOf({ updatedAt }: { readonly updatedAt: Date }): number {
  return Math.floor(updatedAt.getTime() / 1_000) * 1_000;
}

export function nextHeartbeat(heartbeat: Heartbeat, now = Date.now()): Date | null {
  const { enabled, frequency, updatedAt } = heartbeat;
  if (!enabled || updatedAt === null) return null;
  const every = frequencyMs(frequency);
  const anchor = anchorOf({ updatedAt });
  return new Date(anchor + (Math.floor((now - anchor) / every) + 1) * every);
}
