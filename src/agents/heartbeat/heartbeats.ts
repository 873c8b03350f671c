import type { TenantDatabase } from '../../platform/database/database.js';
import type { HeartbeatRow } from '../../platform/database/models.js';
import { frequencyMs } from './frequency.js';

/** Off until the user asks for it, because every heartbeat costs tokens. */
export const DEFAULT_HEARTBEAT = { frequency: '3h', enabled: false } as const;

/** A setting that somebody has made; `updatedAt` is another one for each of the user's. */
export type SetHeartbeat = Pick<HeartbeatRow, 'userId' | 'frequency' | 'enabled' | 'updatedAt'>;

export type Heartbeat = Pick<HeartbeatRow, 'frequency' | 'enabled' | 'lastHeartbeatAt'> & {
  /** Null as long as nobody has set anything. */
  readonly updatedAt: Date | null;
};

/** What lets the heartbeats come. It follows the settings, and may be told the same again. */
export interface HeartbeatScheduler {
  /** @throws UnavailableError when it cannot be reached; it may have heard all the same. */
  apply(heartbeat: SetHeartbeat): Promise<void>;
}

/** The user's setting, or the default. */
export async function readHeartbeat(tenant: TenantDatabase, userId: string): Promise<Heartbeat> {
  const row = await tenant.transaction((db) => db.Heartbeat.findByPk(userId));
  return row ?? { ...DEFAULT_HEARTBEAT, lastHeartbeatAt: null, updatedAt: null };
}

/** When heartbeats are counted from, in Unix milliseconds: schedules know whole seconds. */
export function anchorOf({ updatedAt }: { readonly updatedAt: Date }): number {
  return Math.floor(updatedAt.getTime() / 1_000) * 1_000;
}

/** When the agents are asked next; null when they are not. */
export function nextHeartbeat(heartbeat: Heartbeat, now = Date.now()): Date | null {
  const { enabled, frequency, updatedAt } = heartbeat;
  if (!enabled || updatedAt === null) return null;
  const every = frequencyMs(frequency);
  const anchor = anchorOf({ updatedAt });
  return new Date(anchor + (Math.floor((now - anchor) / every) + 1) * every);
}
