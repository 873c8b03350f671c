import type { HttpSettings } from '../../src/platform/http/settings.js';
import type { RateLimit } from '../http/rate-limit.js';
import type { ConcurrencyLimit } from '../http/under-way.js';

/**
 * AI calls of one user under way, by all keys and agents: each holds a connection to a provider. In all so
 * many that those which go on when their clients have left find one as well.
 */
export const AI_CALLS_AT_ONCE: ConcurrencyLimit = { name: 'ai-calls', max: 200, most: 900 };

/** AI calls of one key, agent or user. */
export const aiCallLimit = ({ aiCallsPerMinute: max }: HttpSettings): RateLimit => ({
  name: 'ai-calls',
  max,
  windowMs: 60_000,
  message: 'AI rate limit exceeded.',
});
