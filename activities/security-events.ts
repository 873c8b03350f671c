import type { EventEffects } from '../src/accounts/security-events/apply-events.js';

/** What security events ask for. Run as local activities: short and idempotent. */
export function createSecurityEventActivities(effects: Pick<EventEffects, 'apply'>) {
  return {
    /** @returns what became of each event of the token. */
    applySecurityEvent: (id: string) => effects.apply(id),
  };
}

export type SecurityEventActivities = ReturnType<typeof createSecurityEventActivities>;
