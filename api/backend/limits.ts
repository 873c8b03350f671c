import type { RateLimit, WideLimit } from '../http/rate-limit.js';

const windowMs = 60_000;

/** Rate limit of all endpoints below `/api/` (spec 8). */
export const GENERAL_LIMIT: WideLimit = {
  name: 'general',
  max: 120,
  windowMs,
  message: 'Too many requests, please slow down.',
  below: '/api/',
  // All sources are one address there, that of Icecast.
  except: ['/api/radio/authorize'],
};

/** Rate limit of all endpoints below `/api/ai/` (spec 8). */
export const AI_LIMIT: WideLimit = {
  name: 'ai',
  max: 30,
  windowMs,
  message: 'AI rate limit exceeded.',
  below: '/api/ai/',
};

/** Rate limit of Icecast's requests, which all have one address. */
export const RADIO_LIMIT: RateLimit = {
  name: 'radio',
  max: 3_000,
  windowMs,
  message: 'Too many requests, please slow down.',
};

export const SPLITS_LIMIT: RateLimit = {
  name: 'splits-of-user',
  max: 60,
  windowMs,
  message: 'Too many requests, please slow down.',
};

/** Rate limit of deployments (spec 8). */
export const DEPLOYMENT_LIMIT: RateLimit = {
  name: 'deployments',
  max: 5,
  windowMs,
  message: 'Deployment rate limit exceeded.',
};

/** Rate limits of invite codes, which anybody may guess. */
export const INVITE_LIMITS: readonly RateLimit[] = [
  { name: 'invites', max: 10, windowMs, message: 'Too many requests, please slow down.' },
  {
    name: 'invites-site',
    by: 'site',
    max: 20,
    windowMs,
    message: 'Too many requests, please slow down.',
  },
];

/** Rate limits of the bus, by address and by caller: each message costs the check of a signature. */
export const BUS_LIMIT: RateLimit = {
  name: 'bus',
  max: 120,
  windowMs,
  message: 'Too many requests, please slow down.',
};

export const BUS_CALLER_LIMIT: RateLimit = {
  name: 'bus-of-user',
  max: 120,
  windowMs,
  message: 'Too many requests, please slow down.',
};

/** Configurations that a user lets check, from any address: each may guess keys. */
export const MCP_CONFIGS_LIMIT: RateLimit = {
  name: 'mcp-configs-of-user',
  max: 60,
  windowMs,
  message: 'Too many requests, please slow down.',
};
