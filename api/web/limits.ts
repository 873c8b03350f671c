import type { RateLimit } from '../http/rate-limit.js';

const MINUTE_MS = 60_000;
const MESSAGE = 'Too many requests, please slow down.';

/** Requests of one client a minute where the contract (spec 8) states no number. */
const UNSTATED = 10;

/** The web API's rates (spec 8). */
export const WEB_LIMITS: readonly RateLimit[] = [
  under('agents', '/api/agents', 100),
  // Both ask agents: one limit, so that neither is a way around the other's.
  under('chat', ['/api/chat', '/api/agent'], 60),
  under('instance', '/api/instance', 30),
  under('register', '/api/register', UNSTATED),
  { ...under('demo', '/api/demo/chat', UNSTATED), message: 'Too many requests' },
  // To hash a key by bcrypt keeps the process for some 70 ms.
  { ...under('keys', '/api/keys', UNSTATED), applies: isKeyCreation },
];

function isKeyCreation(method: string, path: string): boolean {
  return method === 'POST' && path === '/api/keys';
}

/** Everything at one of the paths and below it. */
function under(name: string, prefixes: string | readonly string[], max: number): RateLimit {
  return {
    name,
    max,
    windowMs: MINUTE_MS,
    message: MESSAGE,
    applies: (_method, path) =>
      [prefixes].flat().some((prefix) => path === prefix || path.startsWith(`${prefix}/`)),
  };
}
