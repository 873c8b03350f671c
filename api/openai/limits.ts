import type { HttpSettings } from '../../src/platform/http/settings.js';
import type { RateLimit } from '../http/rate-limit.js';
import type { ConcurrencyLimit } from '../http/in-flight.js';

/** A user's AI calls in flight; the total leaves connections for calls whose clients have disconnected. */
export const AI_CALLS_AT_ONCE: ConcurrencyLimit = { name: 'ai-calls', perOwner: 200, total: 900 };

/** Rate limit of AI calls by user, over all keys, or by agent. */
export const aiCallLimit = ({ aiCallsPerMinute: max }: HttpSettings): RateLimit => ({
  name: 'ai-calls',
  max,
  windowMs: 60_000,
  message: 'AI rate limit exceeded.',
});
