import { generatePrivateKey, privateKeyToAccount, privateKeyToAddress } from 'viem/accounts';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { MAX_AGENT_WALLETS } from '../../../src/money/wallets/agent-wallets.js';
import { ownWallets } from '../../../src/money/wallets/own-wallets.js';
import { openKey } from '../../../src/money/wallets/open-key.js';
import { queryRows } from '../../platform/database/catalog.js';
import type { CallOptions } from '../../support/http.js';
import { walletSite, type Person, type WalletSite } from './support.js';

let site: WalletSite;
let ada: Person;
let bob: Person;
let agentId: string;

beforeAll(async () => {
  site = await walletSite();
  bob = await site.person();
});
afterAll(() => site?.close());
beforeEach(async () => {
  ada = await site.person();
  agentId = await site.agentOf(ada);
});

const attack = { tags: 'attack' };
const PATH = '/api/underground/wallets';

const provide = (body: object, as?: Pick<Person, 'id'>, options: CallOptions = {}) =>
  site.backend(as, 'POST', PATH, { body, ...options });

/** Requests a wallet with the API key of a user's program. */
async function byProgram(user: Person, body: object) {
  const made = await site.web(user, 'POST', '/api/keys', {
    body: { name: 'program', scopes: ['money'] },
  });
  const headers = { authorization: `Bearer ${made.body.key}` };
  return provide(body, undefined, { headers });
}

const owner = <Row extends object>(sql: string) => queryRows<Row>(site.database.ownerUrl, sql);
const rowsOf = (user: Pick<Person, 'id'>) =>
  owner<{ address: string; agent_id: string | null; sealed_key: string | null }>(
    `SELECT address, agent_id, sealed_key FROM wallets WHERE user_id = '${user.id}'`,
  );
const open = (address: string) =>
  openKey(site.database.db.asPlatform(), site.dependencies.secrets, address.toLowerCase());

/** Creates the agent's wallet. @returns its address as it is stored. */
async function provided(): Promise<string> {
  const { body } = await provide({ userId: ada.id, agentId });
  return body.address.toLowerCase();
}

const newWallet = () => privateKeyToAccount(generatePrivateKey());

/** Returns the request of an agent that brings its own wallet. */
async function brought(user: Pick<Person, 'id'>, agent: string, wallet = newWallet()) {
  const address = wallet.address.toLowerCase();
  const message = `agent-platform-wallet:v1\n${user.id}\n${agent}\n${address}`;
  const signature = await wallet.signMessage({ message });
  return { userId: user.id, agentId: agent, address: wallet.address, signature };
}

describe('agent wallet', () => {
  test("creates an agent's wallet once and keeps its key for signing", async () => {
    const first = await provide({ userId: ada.id, agentId });
    expect(first.status).toBe(201);
    const { address } = first.body;
    expect(first.body).toEqual({ address, agentId, userId: ada.id });
    const key = await open(address);
    expect(key && privateKeyToAddress(key)).toBe(address);

    const again = await provide({ userId: ada.id, agentId }, ada);
    expect([again.status, again.body]).toEqual([200, first.body]);
    expect(await rowsOf(ada)).toHaveLength(1);
  });

  test('concurrent requests create one wallet', async () => {
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => provide({ userId: ada.id, agentId })),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([...Array(9).fill(200), 201]);
    expect(new Set(answers.map(({ body }) => body.address)).size).toBe(1);
    expect(await rowsOf(ada)).toHaveLength(1);
  });

  test('a repeated Idempotency-Key returns the first answer', async () => {
    const options = { headers: { 'idempotency-key': agentId } };
    const [first, again] = [
      await provide({ userId: ada.id, agentId }, undefined, options),
      await provide({ userId: ada.id, agentId }, undefined, options),
    ];
    expect([again.status, again.body]).toEqual([201, first.body]);
  });

  test("the operator and the agent's owner, with internal key or API key, may request a wallet", async () => {
    const body = { userId: ada.id, agentId };
    const made = await byProgram(ada, body);
    expect(made.status).toBe(201);
    expect((await provide(body, ada)).body).toEqual(made.body);
    const [record] = await owner(
      `SELECT actor, subject, detail FROM audit_log WHERE action = 'wallet.create' AND user_id = '${ada.id}'`,
    );
    const detail = { agentId, kind: 'agent', kept: true };
    expect(record).toEqual({ actor: ada.id, subject: made.body.address.toLowerCase(), detail });
  });

  test.each([
    ['no agent', () => ({ userId: ada.id })],
    ['no user', () => ({ agentId })],
    ['only an address', () => ({ userId: ada.id, agentId, address: newWallet().address })],
    ['what is no address', () => ({ userId: ada.id, agentId, address: '0x1', signature: '0x00' })],
    ['a number as user', () => ({ userId: 1, agentId })],
  ])('refuses a wallet for %s', async (_name, body) => {
    expect((await provide(body())).status).toBe(400);
    expect(await rowsOf(ada)).toEqual([]);
  });

  test('refuses a wallet for an agent that is being removed', async () => {
    await owner(`UPDATE agents SET desired = 'deleted' WHERE id = '${agentId}'`);
    expect((await provide({ userId: ada.id, agentId })).status).toBe(404);
  });

  test('keeps the wallet after its agent is removed', async () => {
    const address = await provided();
    await owner(`DELETE FROM agents WHERE id = '${agentId}'`);
    expect(await rowsOf(ada)).toMatchObject([{ address, agent_id: null }]);
    expect(await open(address)).toMatch(/^0x[\da-f]{64}$/);
  });

  test('limits the agent wallets of a user, also for concurrent requests', async () => {
    await owner(
      `INSERT INTO wallets (id, user_id, kind, address, sealed_key, created_at)
       SELECT gen_random_uuid(), '${ada.id}', 'agent', '0x' || lpad(to_hex(n), 40, '0'), 'x', now()
         FROM generate_series(2, ${MAX_AGENT_WALLETS}) n`,
    );
    const agents = await Promise.all(Array.from({ length: 10 }, () => site.agentOf(ada)));
    const answers = await Promise.all(
      agents.map((each) => provide({ userId: ada.id, agentId: each })),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array(9).fill(409)]);
    const refused = answers.find(({ status }) => status === 409);
    expect(refused?.body.limit).toBe(MAX_AGENT_WALLETS);
  });

  test(
    'a sealed key cannot be opened as that of another wallet of the same owner',
    attack,
    async () => {
      const address = await provided();
      const another = await provide({ userId: ada.id, agentId: await site.agentOf(ada) });
      await owner(`UPDATE wallets SET sealed_key = (SELECT sealed_key FROM wallets
                                                   WHERE address = '${another.body.address.toLowerCase()}')
                  WHERE address = '${address}'`);
      await expect(open(address)).rejects.toThrow('cannot be opened');
    },
  );

  test("an agent's wallet is not a wallet of its owner", async () => {
    const address = await provided();
    expect(await ownWallets(site.database.db.asPlatform(), ada.id)).not.toContain(address);
  });
});

describe('wallet brought by an agent', () => {
  test('a wallet with a valid signature is stored without a key', async () => {
    const body = await brought(ada, agentId);
    const { status, body: answer } = await provide(body);
    const address = body.address.toLowerCase();
    expect([status, answer]).toEqual([201, { address: body.address, agentId, userId: ada.id }]);
    expect(await rowsOf(ada)).toEqual([{ address, agent_id: agentId, sealed_key: null }]);
    expect(await open(address)).toBeUndefined();
  });

  test('a second wallet does not replace the first', async () => {
    const first = await provide(await brought(ada, agentId));
    const second = await provide(await brought(ada, agentId));
    expect([second.status, second.body]).toEqual([200, first.body]);
  });

  test('refuses a wallet with a signature for another agent or user', attack, async () => {
    const another = await site.agentOf(ada);
    const ofBob = await site.agentOf(bob);
    for (const body of [
      { ...(await brought(ada, another)), agentId },
      { ...(await brought(bob, ofBob)), userId: ada.id, agentId },
    ]) {
      // A contract wallet could have signed: without a chain to check, the answer is 503.
      expect([401, 503]).toContain((await provide(body)).status);
    }
    expect(await rowsOf(ada)).toEqual([]);
  });
});

describe('wallets of another user', () => {
  test(
    "a user cannot create, read or import a wallet for another user's agent",
    attack,
    async () => {
      const { address } = (await provide({ userId: ada.id, agentId })).body;
      const bare = await site.agentOf(ada);
      for (const agent of [agentId, bare]) {
        for (const userId of [ada.id, bob.id]) {
          for (const answer of [
            await provide({ userId, agentId: agent }, bob),
            await byProgram(bob, { userId, agentId: agent }),
            await provide(await brought({ id: userId }, agent), bob),
          ]) {
            expect([answer.status, answer.body]).toEqual([404, { error: 'Agent not found' }]);
            expect(answer.text).not.toContain(address);
          }
        }
      }
      expect(await rowsOf(ada)).toHaveLength(1);
      expect(await rowsOf(bob)).toEqual([]);
    },
  );

  test('the operator gets no wallet if the request names the wrong user', attack, async () => {
    await provide({ userId: ada.id, agentId });
    const { status, body } = await provide({ userId: bob.id, agentId });
    expect([status, body]).toEqual([404, { error: 'Agent not found' }]);
  });

  test("a sealed key cannot be opened in another user's row", attack, async () => {
    const address = await provided();
    await owner(`UPDATE wallets SET user_id = '${bob.id}', agent_id = NULL
                  WHERE address = '${address}'`);
    await expect(open(address)).rejects.toThrow('cannot be opened');
  });
});

test(
  'no private key appears in an answer, a log, an audit record or a stored answer',
  attack,
  async () => {
    const headers = { 'idempotency-key': agentId };
    const answer = await provide({ userId: ada.id, agentId }, undefined, { headers });
    const key = (await open(answer.body.address))?.slice(2) ?? '';
    expect(key).toHaveLength(64);
    const stored = await owner<{ row: string }>(
      `SELECT t::text AS row FROM idempotency_keys t UNION ALL SELECT t::text FROM audit_log t
      UNION ALL SELECT t::text FROM wallets t`,
    );
    expect(stored.length).toBeGreaterThan(2);
    const texts = [answer.text, ...site.logged, ...stored.map(({ row }) => row)];
    expect(texts.filter((text) => text.toLowerCase().includes(key))).toEqual([]);
  },
);
