import type { EventEffects } from '../src/accounts/security-events/apply-events.js';

/** Creates the activities that apply security events. Run as local activities: short and idempotent. */
export function createSecurityEventActivities(effects: Pick<EventEffects, 'apply'>) {
  return {
    applySecurityEvent: (id: string) => effects.apply(id),
  };
}

export type SecurityEventActivities = ReturnType<typeof createSecurityEventActivities>;
