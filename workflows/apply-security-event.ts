import type { SecurityEventActivities } from '../activities/security-events.js';
import type { EventOutcome } from '../src/types/security-events.js';
import { proxyRecords } from './records.js';

/** Applies a security event token, by the id of its row, as soon as the database is available. */
export async function applySecurityEvent(id: string): Promise<readonly EventOutcome[]> {
  return proxyRecords<SecurityEventActivities>().applySecurityEvent(id);
}
