import type { SecurityEventActivities } from '../activities/security-events.js';
import type { EventOutcome } from '../src/types/security-events.js';
import { proxyRecords } from './records.js';

/**
 * Applies what one token of the identity provider told, as soon as the database can be reached.
 *
 * @param id of its row.
 * @returns what became of each of its events.
 */
export async function applySecurityEvent(id: string): Promise<readonly EventOutcome[]> {
  return proxyRecords<SecurityEventActivities>().applySecurityEvent(id);
}
