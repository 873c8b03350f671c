import { recoverMessageAddress } from 'viem';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createContainersListener } from '../../api/containers/containers.js';
import type { Listening } from '../../api/http/server.js';
import { createAgentBus } from '../../src/agent-ai-services.js';
import { AgentCallerLookup } from '../../src/agents/credentials/agent-caller-lookup.js';
import { createAgentSecrets, secretContext } from '../../src/agents/credentials/agent-secrets.js';
import { grantPlan } from '../../src/accounts/accounts/subscriptions.js';
import { BusDelivery } from '../../src/bus/bus-delivery.js';
import { BusSigner, ForeignTextError } from '../../src/bus/bus-signer.js';
import { signatureContext } from '../../src/bus/sealed-contexts.js';
import { openKey } from '../../src/money/wallets/open-key.js';
import { handOverPeriodically } from '../../worker/hand-over.js';
import { busSignatures } from '../../worker/handed-rows.js';
import type { Person } from '../money/wallets/support.js';
import { call } from '../support/http.js';
import { busSite, messageOf, textOf, type BusAgent, type BusSite } from './support.js';

let site: BusSite;
let agents: Listening;
let signer: BusSigner;
let owner: Person;
let bob: BusAgent;
/** An agent whose wallet the platform keeps. */
let kept: { readonly id: string; readonly address: string };

const stop = new AbortController();
let signing: Promise<void>;

beforeAll(async () => {
  site = await busSite();
  const { dependencies } = site;
  const { database, log, secrets, settings } = dependencies;
  const keys = (address: string) => openKey(database.asPlatform(), secrets, address);
  signer = new BusSigner({ database, secrets, kept: keys });
  signing = handOverPeriodically({ database, log }, busSignatures(signer), stop.signal);
  agents = await createContainersListener({
    ...dependencies,
    ...createAgentBus({ database, settings }),
    agentCallers: new AgentCallerLookup(database, settings.accounts),
  }).listen('127.0.0.1', 0);
});
afterAll(async () => {
  stop.abort();
  await signing;
  await agents?.close();
  await site?.close();
});
beforeEach(async () => {
  bob = await site.agent();
  ({ owner } = bob);
  kept = await keptAgent(owner);
});

async function keptAgent(of: Person): Promise<{ readonly id: string; readonly address: string }> {
  const id = await site.agentOf(of);
  const body = { userId: of.id, agentId: id };
  const made = await site.backend(of, 'POST', '/api/underground/wallets', { body });
  expect(made.status).toBe(201);
  return { id, address: made.body.address };
}

const sign = (agentId: string, message: object, as: Pick<Person, 'id'> = owner) =>
  site.backend(as, 'POST', '/api/underground/bus/sign', { body: { agentId, message } });

/** A message without its sender. */
const unsigned = (to = bob) => {
  const { from, ...message } = messageOf(kept, to);
  return message;
};

describe('a signature by a kept wallet', () => {
  test('a signature by a kept wallet is accepted by the entrance of the bus', async () => {
    const message = unsigned();
    const { body, status } = await sign(kept.id, message);
    expect(status).toBe(200);
    const { signature, ...signedMessage } = body;
    expect(signedMessage).toEqual({ ...message, from: kept.id });
    const text = textOf(signedMessage);
    expect(await recoverMessageAddress({ message: text, signature })).toBe(kept.address);
    expect((await site.post(body)).status).toBe(200);
    expect(await site.rows('SELECT id FROM bus_signatures')).toEqual([]);
  });

  test('names the agent as its sender, regardless of the sender in the message', async () => {
    const { body } = await sign(kept.id, { ...unsigned(), from: bob.id });
    expect(body.from).toBe(kept.id);
  });

  test('a signature by a kept wallet is refused for a wallet whose key is elsewhere, and for no wallet', async () => {
    for (const id of [bob.id, await site.agentOf(owner)]) {
      const { body, status } = await sign(id, unsigned());
      expect([status, body.code]).toEqual([409, 'WALLET_MISSING']);
    }
  });

  test(
    'a signature by a kept wallet is refused for the agent of another user',
    { tags: 'attack' },
    async () => {
      const stranger = await site.person();
      expect((await sign(kept.id, unsigned(), stranger)).status).toBe(404);
    },
  );

  test.each(['PAY', ''])(
    'a signature by a kept wallet is refused for the action %j',
    async (action) => {
      expect((await sign(kept.id, { ...unsigned(), action })).status).toBe(400);
    },
  );
});

test('the signer signs no text but messages of the bus', { tags: 'attack' }, async () => {
  const id = 'a-forged-row';
  for (const text of ['agent-platform-bus:v2\n{}', 'agent-platform-wallet:v1', '']) {
    const sealed = site.dependencies.secrets.seal(text, signatureContext(id));
    await site.rows(
      `INSERT INTO bus_signatures (id, user_id, agent_id, sealed_text, due_at)
       VALUES ('${id}', '${owner.id}', '${kept.id}', '${sealed}', 'infinity')`,
    );
    await expect(signer.step(id)).rejects.toThrow(ForeignTextError);
    const [row] = await site.rows(`SELECT signature FROM bus_signatures WHERE id = '${id}'`);
    expect(row).toEqual({ signature: null });
    await site.rows(`DELETE FROM bus_signatures WHERE id = '${id}'`);
  }
});

describe('an agent in its container', () => {
  /** Creates the token of an agent's container. */
  async function tokenOf(agentId: string, userId: string): Promise<string> {
    const { database, secrets } = site.dependencies;
    return database.asUser(userId).transaction(async (db) => {
      await createAgentSecrets(db, secrets, { id: agentId, userId });
      const row = await db.AgentSecret.findOne({ where: { agentId, kind: 'ai-token' } });
      return secrets.open(row?.sealed ?? '', secretContext(agentId, 'ai-token'));
    });
  }

  const ask = (token: string, method: string, query = '', body?: object) =>
    call(agents.url, method, `/v1/bus/messages${query}`, {
      headers: { authorization: `Bearer ${token}` },
      ...(body && { body }),
    });

  test('sends messages, once for each messageId', async () => {
    const token = await tokenOf(kept.id, owner.id);
    const message = { to: bob.id, action: 'AMPLIFY_POST', payload: { n: 1 } };
    const first = await ask(token, 'POST', '', message);
    expect([first.status, first.body]).toEqual([
      200,
      { success: true, messageId: expect.any(String) },
    ]);
    const named = { ...message, messageId: 'named' };
    for (const _ of [1, 2]) expect((await ask(token, 'POST', '', named)).status).toBe(200);
    const other = await ask(token, 'POST', '', { ...named, payload: {} });
    expect([other.status, other.body.code]).toEqual([409, 'MESSAGE_ID_REUSED']);
    expect((await ask(token, 'POST', '', { ...message, to: 'nobody' })).status).toBe(404);
    expect((await ask(token, 'POST', '', { ...message, action: 'PAY' })).status).toBe(400);
    const rows = await site.rows(`SELECT id FROM bus_messages WHERE from_agent = '${kept.id}'`);
    expect(rows).toHaveLength(2);
  });

  test('sends nothing without a kept wallet', async () => {
    const token = await tokenOf(bob.id, owner.id);
    const message = { to: kept.id, action: 'AMPLIFY_POST', payload: {} };
    const { body, status } = await ask(token, 'POST', '', message);
    expect([status, body.code]).toEqual([409, 'WALLET_MISSING']);
    expect(body.error).toContain('POST /api/underground/wallets');
  });

  test('sends nothing without a plan', async () => {
    const poor = await site.person();
    const agent = await keptAgent(poor);
    const token = await tokenOf(agent.id, poor.id);
    const message = { to: bob.id, action: 'AMPLIFY_POST', payload: {} };
    expect((await ask(token, 'POST', '', message)).status).toBe(402);
    await grantPlan(site.database.db, poor.id, 'label', { actor: 'test', requestId: 'test' });
    expect((await ask(token, 'POST', '', message)).status).toBe(200);
  });

  test('fetches its messages in order; those it has passed are delivered', async () => {
    const token = await tokenOf(kept.id, owner.id);
    const sent = [];
    for (const n of [1, 2, 3]) sent.push(await site.send(bob, kept, { payload: { n } }));
    const statuses = async () =>
      (
        await site.rows<{ status: string }>(
          `SELECT status FROM bus_messages WHERE to_agent = '${kept.id}' ORDER BY id`,
        )
      ).map(({ status }) => status);

    const first = await ask(token, 'GET', '?limit=2');
    expect(first.status).toBe(200);
    expect(first.body.messages).toEqual(
      sent.slice(0, 2).map(({ message: { action, from, messageId, payload } }) => ({
        id: expect.stringMatching(/^\d+$/),
        ...{ messageId, action, from, payload },
        createdAt: expect.any(String),
      })),
    );
    expect(first.body.next).toBe(first.body.messages[1].id);
    expect(await statuses()).toEqual(['queued', 'queued', 'queued']);

    const second = await ask(token, 'GET', `?after=${first.body.next}`);
    expect(second.body.messages).toMatchObject([{ payload: { n: 3 } }]);
    expect(await statuses()).toEqual(['delivered', 'delivered', 'queued']);

    const last = await ask(token, 'GET', `?after=${second.body.next}`);
    expect(last.body).toEqual({ messages: [], next: second.body.next });
    expect(await statuses()).toEqual(['delivered', 'delivered', 'delivered']);
    const { secrets } = site.dependencies;
    const outbound = { post: () => Promise.reject(new Error('No message is posted')) };
    const delivery = new BusDelivery({ database: site.database.db, secrets, outbound });
    const { signal } = new AbortController();
    expect(await delivery.deliver(second.body.next, signal)).toBe('settled');
  });

  test(
    'an agent in its container cannot read messages of another agent',
    { tags: 'attack' },
    async () => {
      const token = await tokenOf(bob.id, owner.id);
      const stranger = await site.agent();
      await site.send(stranger, kept);
      const { body } = await ask(token, 'GET');
      expect(body.messages).toEqual([]);
      const [row] = await site.rows<{ max: string }>('SELECT max(id) FROM bus_messages');
      await ask(token, 'GET', `?after=${row?.max}`);
      const [other] = await site.rows(
        `SELECT status FROM bus_messages WHERE to_agent = '${kept.id}'`,
      );
      expect(other).toEqual({ status: 'queued' });
    },
  );

  test.each(['?after=x', '?after=-1', `?after=${2n ** 63n}`, '?limit=0', '?limit=51'])(
    'an agent in its container is refused with %s',
    async (query) => {
      const token = await tokenOf(kept.id, owner.id);
      expect((await ask(token, 'GET', query)).status).toBe(400);
    },
  );

  test('an agent in its container needs its token', { tags: 'attack' }, async () => {
    expect((await ask('nobody', 'GET')).status).toBe(401);
    expect((await ask('nobody', 'POST', '', {})).status).toBe(401);
  });
});
