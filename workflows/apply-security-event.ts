import type { SecurityEventActivities } from '../activities/security-events.js';
import type { EventOutcome } from '../src/types/security-events.js';
import { proxyRecords } from './records.js';

/**
 * Applies a security event token of the identity provider, as soon as the database is available.
 *
 * @param id of its row.
 * @returns the outcome of each event.
 */
export async function applySecurityEvent(id: string): Promise<readonly EventOutcome[]> {
  return proxyRecords<SecurityEventActivities>().applySecurityEvent(id);
}
