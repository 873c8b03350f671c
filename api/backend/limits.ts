import type { RateLimit } from '../http/rate-limit.js';

const MINUTE_MS = 60_000;

/** The backend's rates (spec 8). A request counts once in each that applies to it. */
export const BACKEND_LIMITS: readonly RateLimit[] = [
  {
    name: 'general',
    max: 120,
    windowMs: MINUTE_MS,
    message: 'Too many requests, please slow down.',
    applies: (_method, path) => path.startsWith('/api/'),
  },
  {
    name: 'ai',
    max: 30,
    windowMs: MINUTE_MS,
    message: 'AI rate limit exceeded.',
    applies: (_method, path) => path.startsWith('/api/ai/'),
  },
  {
    name: 'deployments',
    max: 5,
    windowMs: MINUTE_MS,
    message: 'Deployment rate limit exceeded.',
    applies: (method, path) => method === 'POST' && path === '/api/deployments',
  },
];
