import type { HttpSettings } from '../../src/platform/http/settings.js';
import type { RateLimit } from '../http/rate-limit.js';
import type { ConcurrencyLimit } from '../http/in-flight.js';

/**
 * Limits a user's AI calls in flight, over all keys and agents: each holds a provider connection. The
 * total leaves connections for calls that continue after their clients disconnect.
 */
export const AI_CALLS_AT_ONCE: ConcurrencyLimit = {
  name: 'ai-calls',
  perOwner: 200,
  total: 900,
};

/** Rate limit of AI calls by key, agent or user. */
export const aiCallLimit = ({ aiCallsPerMinute: max }: HttpSettings): RateLimit => ({
  name: 'ai-calls',
  max,
  windowMs: 60_000,
  message: 'AI rate limit exceeded.',
});
