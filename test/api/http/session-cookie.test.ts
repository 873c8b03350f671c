// @module-tag attack
import { expect, test } from 'vitest';
import {
  clearSessionCookie,
  readSessionCookie,
  serializeSessionCookie,
} from '../../../api/auth/session-cookie.js';
import { addressOf } from '../../../src/agents/address/agent-address.js';
import { HTTP_SETTINGS } from './support.js';

test.each([true, false])("limits the cookie to the platform's own host (secure: %s)", (secure) => {
  for (const made of [serializeSessionCookie('t', secure), clearSessionCookie(secure)]) {
    const [pair = '', ...attributes] = made.split('; ');
    expect(attributes).toContain('Path=/');
    expect(attributes.includes('Secure')).toBe(secure);
    expect(attributes.filter((each) => /^domain/i.test(each))).toEqual([]);
    if (pair.endsWith('=t')) expect(readSessionCookie(pair)).toBe('t');
  }
});

test("ignores session cookies when an agent's page has added its own", () => {
  // A page below the site can set a cookie with `Domain=`; browsers then send both.
  expect(readSessionCookie('service-session=of-the-agent; service-session=ours')).toBeUndefined();
  expect(readSessionCookie('service-session=ours; a=b; service-session=')).toBeUndefined();
});

test("assigns agents a host name that never receives the platform's cookies", () => {
  const at = { domain: 'localhost', scheme: 'http', port: 3000 } as const;
  const { hostname } = new URL(addressOf({ subdomain: 'first-0a1b2c3d' }, at).url ?? '');
  expect(hostname).toBe('first-0a1b2c3d.localhost');
  expect(HTTP_SETTINGS.ownNames.has(hostname)).toBe(false);
});
