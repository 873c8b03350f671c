import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FORGED_HOSTS, FORGED_URLS } from '../platform/outbound/forged.js';
import { busSite, type BusAgent, type BusSite } from './support.js';

let site: BusSite;
let ada: BusAgent;
let bob: BusAgent;

beforeAll(async () => {
  site = await busSite({ OUTBOUND_ALLOW: '127.0.0.1:8081' });
  [ada, bob] = [await site.agent(), await site.agent()];
});
afterAll(() => site?.close());

const ALLOWED = 'http://127.0.0.1:8081/hook';
const pathOf = ({ id }: Pick<BusAgent, 'id'>) => `/api/underground/webhooks/${id}`;
const put = (agent: BusAgent, body: object, as = agent.owner) =>
  site.backend(as, 'PUT', pathOf(agent), { body });

describe('a webhook', () => {
  test('shows its secret once and seals it', async () => {
    const made = await put(ada, { url: ALLOWED, refuses: ['somebody'] });
    const { secret } = made.body;
    expect(made.status).toBe(200);
    expect(made.body).toEqual({ agentId: ada.id, url: ALLOWED, refuses: ['somebody'], secret });
    expect(secret).toMatch(/^whsec_[\w-]{43}$/);
    const shown = await site.backend(ada.owner, 'GET', pathOf(ada));
    expect([shown.status, shown.body]).toEqual([
      200,
      { agentId: ada.id, url: ALLOWED, refuses: ['somebody'], pausedAt: null },
    ]);
    const rows = await site.rows(`SELECT to_jsonb(w) FROM bus_webhooks w`);
    expect(JSON.stringify([rows, site.logged])).not.toContain(secret.slice(6));
  });

  test('a webhook is replaced with a new secret, and resumed if it is paused', async () => {
    const first = await put(ada, { url: ALLOWED });
    await site.rows(
      `UPDATE bus_webhooks SET paused_at = now(), dead_in_row = 20 WHERE agent_id = '${ada.id}'`,
    );
    const { body } = await site.backend(ada.owner, 'GET', pathOf(ada));
    expect(body.pausedAt).toEqual(expect.any(String));
    const second = await put(ada, { url: ALLOWED });
    expect(second.body.secret).not.toBe(first.body.secret);
    const [row] = await site.rows(
      `SELECT paused_at, dead_in_row FROM bus_webhooks WHERE agent_id = '${ada.id}'`,
    );
    expect(row).toEqual({ paused_at: null, dead_in_row: 0 });
  });

  test('a webhook is removed, and both changes are in the audit log', async () => {
    await put(bob, { url: ALLOWED });
    const removed = await site.backend(bob.owner, 'DELETE', pathOf(bob));
    expect([removed.status, removed.body]).toEqual([200, { success: true }]);
    expect((await site.backend(bob.owner, 'GET', pathOf(bob))).status).toBe(404);
    expect((await site.backend(bob.owner, 'DELETE', pathOf(bob))).status).toBe(404);
    const records = await site.rows<{ action: string }>(
      `SELECT action FROM audit_log WHERE subject = '${bob.id}' ORDER BY id`,
    );
    expect(records.map(({ action }) => action)).toEqual(['bus-webhook.put', 'bus-webhook.delete']);
  });

  test('a webhook is accessible only to the owner of its agent', { tags: 'attack' }, async () => {
    await put(ada, { url: ALLOWED });
    expect((await put(ada, { url: ALLOWED }, bob.owner)).status).toBe(404);
    for (const method of ['GET', 'DELETE']) {
      expect((await site.backend(bob.owner, method, pathOf(ada))).status).toBe(404);
    }
    expect((await site.backend(ada.owner, 'GET', pathOf(ada))).status).toBe(200);
    expect((await put({ ...ada, id: 'nobody' }, { url: ALLOWED })).status).toBe(404);
  });
});

describe('a refused address', { tags: 'attack' }, () => {
  test.each([
    ...FORGED_HOSTS.map((host) => `http://${host}/`),
    ...FORGED_URLS.filter((url) => url.length > 0),
    'https://user:password@example.com/',
    'ftp://example.com/',
    'nonsense',
    '',
  ])('is 400: %j', async (url) => {
    // The operator's own requests are not limited.
    const answer = await site.backend(undefined, 'PUT', pathOf(ada), { body: { url } });
    expect(answer.status).toBe(400);
  });
});
