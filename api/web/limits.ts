import type { RateLimit } from '../http/rate-limit.js';

/** Requests of one client a minute where the contract (spec 8) states no number. */
const UNSTATED = 10;

/** The web API's rates (spec 8). */
export const LIMITS = {
  agents: perMinute('agents', 100),
  /** Both ways to ask agents share it, so that neither is a way around the other's. */
  chat: perMinute('chat', 60),
  instance: perMinute('instance', 30),
  register: perMinute('register', UNSTATED),
  demo: { ...perMinute('demo', UNSTATED), message: 'Too many requests' },
  /** To hash a key by bcrypt keeps the process for some 70 ms. */
  newKeys: perMinute('keys', UNSTATED),
};

function perMinute(name: string, max: number): RateLimit {
  return { name, max, windowMs: 60_000, message: 'Too many requests, please slow down.' };
}
