// @module-tag attack
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { builtProgram, projectRoot } from '../../dev/root.js';
import { FORGED_HOSTS } from '../platform/outbound/forged.js';
import { canMakeNetworks } from '../support/far-addresses.js';
import { buildPrograms } from '../support/run-program.js';
import { ClosedNetwork } from './closed-network.js';

/** The only private address that is allowed; all listed addresses listen. */
const ALLOWED = '10.20.30.41';
const ADDRESSES = [
  ...['10.20.30.40', '172.16.5.5', '192.168.77.7', '100.64.0.1', '192.0.0.192', '198.18.0.1'],
  ...['169.254.169.254', '100.100.100.200', '168.63.129.16', 'fd00:ec2::254', 'fc00::1'],
  ...['2002:a9fe:a9fe::1', '64:ff9b::a9fe:a9fe', '2001:db8::1', 'fec0::1'],
  ALLOWED,
];
const SITE = 8_081;
const SUMMARIZER = 3_100;

interface Reported {
  readonly answers: readonly {
    readonly url: string;
    readonly status: number;
    readonly body: { readonly code?: string; readonly text?: string };
  }[];
  readonly reached: readonly string[];
}

let network: ClosedNetwork;
beforeAll(async () => {
  if (!canMakeNetworks) return;
  await buildPrograms();
  network = await ClosedNetwork.make(ADDRESSES);
  const env = {
    NODE_ENV: 'production',
    SUMMARIZER_PORT: String(SUMMARIZER),
    TRUSTED_PROXIES: '127.0.0.1',
    OUTBOUND_ALLOW: `${ALLOWED}:80, 127.0.0.1:${SITE}`,
  };
  await network.serve(builtProgram('api', 'summarizer', 'main.js'), env, 'The summarizer is at');
});
afterAll(() => network?.close());

const ask = (urls: readonly string[]) =>
  network.evaluate<Reported>(path.join(projectRoot, 'test', 'e2e', 'ask-in-closed-network.mjs'), {
    site: SITE,
    summarizer: `http://127.0.0.1:${SUMMARIZER}`,
    urls,
  });

const inUrl = (address: string) => (address.includes(':') ? `[${address}]` : address);

test.runIf(canMakeNetworks)(
  'a production summarizer sends no packet to private addresses and reads allowed ones',
  async () => {
    const inside = ADDRESSES.filter((address) => address !== ALLOWED).map(inUrl);
    const hosts = [...new Set([...inside, ...FORGED_HOSTS])];
    const direct = hosts.flatMap((host) => [`http://${host}/`, `https://${host}/`]);
    const redirects = hosts.map((host) => {
      const to = encodeURIComponent(encodeURI(`http://${host}/`));
      return `http://127.0.0.1:${SITE}/?to=${to}`;
    });
    const { answers, reached } = await ask([...direct, ...redirects]);
    const read = answers.filter(
      ({ body }) => !['URL_NOT_ALLOWED', 'INVALID_URL'].includes(body.code ?? ''),
    );
    expect([answers.length, read, reached]).toEqual([hosts.length * 3, [], []]);
    expect(Object.values(await network.packets()).filter((sent) => sent !== 0)).toEqual([]);

    // Allowed addresses answer and are counted, so the others would have been reached as well.
    const allowed = [`http://${ALLOWED}/`, `http://127.0.0.1:${SITE}/?to=http://${ALLOWED}/`];
    const reported = await ask(allowed.flatMap((url) => [url, url, url]));
    expect(reported.answers.map(({ status }) => status)).toEqual(Array(6).fill(200));
    expect(JSON.stringify(reported.answers)).toContain('The secret of the inside.');
    expect(new Set(reported.reached)).toEqual(new Set([ALLOWED]));
    expect((await network.packets())[ALLOWED]).toBeGreaterThan(0);
  },
);
