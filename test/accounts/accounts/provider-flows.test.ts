// @module-tag attack
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ProviderFlows } from '../../../api/auth/provider-flows.js';
import { testSecrets } from '../../support/secrets.js';

const secrets = testSecrets();
const flows = new ProviderFlows('google', secrets, false);

beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'] }));
afterEach(() => void vi.useRealTimers());

/** Returns the browser's `Cookie` header after it stores the given `Set-Cookie` values. */
function kept(set: readonly string[], header = ''): string {
  const cookies = new Map(header.split('; ').flatMap((pair) => (pair ? [split(pair)] : [])));
  for (const each of set) {
    const [name, value] = split(each.split(';')[0] ?? '');
    if (each.includes('Max-Age=0;')) cookies.delete(name);
    else cookies.set(name, value);
  }
  return [...cookies].map((pair) => pair.join('=')).join('; ');
}
const split = (pair: string): [string, string] => {
  const at = pair.indexOf('=');
  return [pair.slice(0, at), pair.slice(at + 1)];
};

describe('a pending sign-in', () => {
  test('a pending sign-in expires after ten minutes', () => {
    const flow = flows.begin();
    const set = flows.store(flow, undefined);
    expect(set).toEqual([expect.stringMatching(/; Max-Age=600; HttpOnly; SameSite=Lax$/)]);
    const header = kept(set);
    vi.setSystemTime(Date.now() + 599_000);
    expect(flows.find(flow.state, header)).toEqual(flow);
    vi.setSystemTime(Date.now() + 2_000);
    expect(flows.find(flow.state, header)).toBeUndefined();
  });

  test('a pending sign-in is dropped when the browser begins five more', () => {
    const begun = Array.from({ length: 6 }, () => flows.begin());
    let header = '';
    for (const flow of begun) header = kept(flows.store(flow, header), header);
    expect(header.split('; ')).toHaveLength(5);
    expect(begun.map(({ state }) => flows.find(state, header) !== undefined)).toEqual([
      false,
      ...Array<boolean>(5).fill(true),
    ]);
  });

  test('a pending sign-in is valid only for its browser, provider, state and key', () => {
    const [flow, other] = [flows.begin(), flows.begin()];
    const header = kept(flows.store(flow, undefined));
    expect(flows.find(flow.state, undefined)).toBeUndefined();
    expect(flows.find(other.state, header)).toBeUndefined();
    const named = header.replace(/google/, 'github');
    expect(new ProviderFlows('github', secrets, false).find(flow.state, named)).toBeUndefined();
    const elsewhere = new ProviderFlows('google', testSecrets(), false);
    expect(elsewhere.find(flow.state, header)).toBeUndefined();
    // The cookie value of a different state under this state's cookie name.
    const [name = ''] = header.split('=');
    const [, sealed = ''] = split(kept(flows.store(other, undefined)));
    expect(flows.find(flow.state, `${name}=${sealed}`)).toBeUndefined();
  });

  test('rejects a pending sign-in when a neighbouring host has set a cookie of the same name', () => {
    const flow = flows.begin();
    const header = kept(flows.store(flow, undefined));
    expect(flows.find(flow.state, `${header}; ${header}`)).toBeUndefined();
  });

  test('the cookie of a pending sign-in reveals none of its secrets', () => {
    const flow = flows.begin({ userId: 'ada', sessionId: 'of-ada' });
    const header = kept(flows.store(flow, undefined));
    for (const secret of [flow.state, flow.nonce, flow.verifier, 'of-ada']) {
      expect(header).not.toContain(secret);
    }
  });

  test('over HTTPS the cookie of a pending sign-in has the __Host- prefix', () => {
    const secure = new ProviderFlows('google', secrets, true);
    const flow = secure.begin();
    const set = secure.store(flow, undefined);
    const attributes = 'Path=/; Max-Age=600; HttpOnly; SameSite=Lax; Secure';
    expect(set).toEqual([
      expect.stringMatching(new RegExp(`^__Host-sign-in-google-[^=]+=[^;]+; ${attributes}$`)),
    ]);
    expect(secure.find(flow.state, kept(set))).toEqual(flow);
    expect(secure.end(flow.state)).toMatch(/^__Host-.*; Max-Age=0; .*; Secure$/);
    expect(secure.find(flow.state, kept(set).replace('__Host-', ''))).toBeUndefined();
  });
});
