// @module-tag attack
import { expect, test } from 'vitest';
import {
  clearSessionCookie,
  readSessionCookie,
  serializeSessionCookie,
} from '../../../api/auth/session-cookie.js';
import { addressOf } from '../../../src/agents/agents/agent-address.js';
import { HTTP_SETTINGS } from './support.js';

test.each([true, false])('the cookie is sent to our host alone (secure: %s)', (secure) => {
  for (const made of [serializeSessionCookie('t', secure), clearSessionCookie(secure)]) {
    const [pair = '', ...attributes] = made.split('; ');
    expect(attributes).toContain('Path=/');
    expect(attributes.includes('Secure')).toBe(secure);
    expect(attributes.filter((each) => /^domain/i.test(each))).toEqual([]);
    if (pair.endsWith('=t')) expect(readSessionCookie(pair)).toBe('t');
  }
});

test("an agent's page cannot put its own session in the place of the user's", () => {
  // As set with `Domain=` of the site by a page below it, which browsers send as well.
  expect(readSessionCookie('service-session=of-the-agent; service-session=ours')).toBeUndefined();
  expect(readSessionCookie('service-session=ours; a=b; service-session=')).toBeUndefined();
});

test('an agent has another host name than the platform, whose cookies it is not sent', () => {
  const agent = { subdomain: 'first-0a1b2c3d', port: 19_100 };
  const { hostname } = new URL(addressOf(agent, 'localhost').url);
  expect(hostname).toBe('first-0a1b2c3d.localhost');
  expect(HTTP_SETTINGS.ownNames.has(hostname)).toBe(false);
});
