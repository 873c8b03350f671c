import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { createTestClient, http } from 'viem';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { errorAnswer } from '../../api/http/error-answer.js';
import { createLimiter } from '../../api/http/limiter.js';
import { limitRefusals } from '../../api/http/middleware/rate-limit.js';
import { errorJson } from '../../api/http/presenter.js';
import type { Listening } from '../../api/http/server.js';
import { BackendClient } from '../../api/web/backend-client.js';
import { createWeb } from '../../api/web/web.js';
import { checkSkillLimit } from '../../src/agents/model/agent-skills.js';
import { passwordHashing } from '../../src/accounts/accounts/hashing-limiters.js';
import { ProviderError } from '../../src/ai/completion/provider-error.js';
import { NoAnswerError } from '../../src/ai/routing/no-answer-error.js';
import { Quota } from '../../src/ai/usage/quota.js';
import { BusAcceptance } from '../../src/bus/bus-acceptance.js';
import { reserveMessages } from '../../src/bus/daily-messages.js';
import { prepared } from '../../src/bus/bus-message.js';
import { QuotaLimiter } from '../../src/lib/quota-limiter.js';
import { X402Gateway } from '../../src/gateway/x402-gateway.js';
import { X402Payments } from '../../src/gateway/x402-payments.js';
import { GasBudget } from '../../src/money/gas/gas-budget.js';
import { MAX_OPEN_SPLITS } from '../../src/money/splits/royalty-splits.js';
import { networksOf } from '../../src/platform/http/client-networks.js';
import { ONE, sessionLab, type SessionLab } from '../money/sessions/support.js';
import { makePayer, newAddress as newPayee } from '../money/splits/support.js';
import { MAX_IN_FLIGHT } from '../../src/swarms/swarms.js';
import { MediaFiles } from '../../src/videos/media-files.js';
import { MAX_IN_FLIGHT as MAX_VIDEOS_UNDER_WAY, Videos } from '../../src/videos/videos.js';
import { queryRows } from '../platform/database/catalog.js';
import { insertSql, ROWS } from '../platform/database/rows.js';
import { fails, startAiProviders, type AiProviders } from '../support/ai-providers.js';
import { call, newAddress } from '../support/http.js';
import { sendJson } from '../support/provider-stub.js';
import { PATH_USD } from '../support/chain/chain.js';

/** Code of a wallet that accepts every signature in a simulation and reverts on chain. */
const FALSE_FRIEND = '0x3a156008575f5ffd5b631626ba7e60e01b5f5260205ff3';

let lab: SessionLab;
let providers: AiProviders;
let backend: Server;
/** A web listener whose backend answers as the test sets. */
let web: Listening;
let ofBackend: { status: number; headers: Record<string, string>; body: object };

beforeAll(async () => {
  providers = await startAiProviders();
  lab = await sessionLab({ ...providers.env('openai'), USDC_ADDRESS: PATH_USD });
  backend = createServer((_request, response) => {
    for (const [name, value] of Object.entries(ofBackend.headers)) response.setHeader(name, value);
    sendJson(response, ofBackend.status, ofBackend.body);
  }).listen(0, '127.0.0.1');
  await once(backend, 'listening');
  const { port } = backend.address() as AddressInfo; // never a string for a TCP listener
  const remote = new BackendClient(`http://127.0.0.1:${port}`, 'key');
  web = await createWeb({ ...lab.site.dependencies, backend: remote }).listen('127.0.0.1', 0);
});
afterAll(async () => {
  await web?.close();
  backend?.close();
  await lab?.close();
  await providers?.close();
});

interface Refused {
  readonly status: number;
  readonly headers: Headers;
}

/** Returns the answer to an error. */
function answerTo(error: unknown): Refused {
  const { status, headers } = errorJson(undefined, errorAnswer(error, 'request'));
  return { status, headers: new Headers(Object.entries({ ...headers }) as [string, string][]) };
}

const thrownBy = async (work: () => unknown): Promise<Refused> => {
  try {
    await work();
  } catch (error) {
    return answerTo(error);
  }
  throw new Error('expected a refusal');
};

const provision = async () => {
  const person = await lab.site.person();
  await queryRows(
    lab.site.database.ownerUrl,
    `INSERT INTO subscriptions (user_id, plan, status, source, period_start, created_at, updated_at)
       VALUES ('${person.id}', 'solo', 'active', 'test', now(), now(), now())`,
  );
  const options = { body: { name: 'one' }, headers: { cookie: person.cookie } };
  return call(web.url, 'POST', '/api/agents/provision', options);
};

const demo = (from: string) =>
  lab.site.web(undefined, 'POST', '/api/demo/chat', { body: { message: 'hello' }, from });

const quotaOf = (userId: string, used: number) =>
  queryRows(
    lab.site.database.ownerUrl,
    `INSERT INTO token_quotas (user_id, month, used, held)
       VALUES ('${userId}', date_trunc('month', now() AT TIME ZONE 'UTC')::date, ${used}, 0)
       ON CONFLICT (user_id, month) DO UPDATE SET used = excluded.used`,
  );

const MINUTE_S = 60;
const DAY_S = 24 * 60 * MINUTE_S;

interface Case {
  readonly limit: number;
  /** The most seconds until the limit's reset. */
  readonly resetS: number;
  refuse(): Promise<Refused>;
}

/** One refusal of each file that makes a 429. */
const CASES: Readonly<Record<string, Case>> = {
  'api/http/limiter.ts': {
    limit: 10,
    resetS: MINUTE_S,
    async refuse() {
      const from = newAddress();
      for (let count = 0; count < 10; count++) {
        await lab.site.web(undefined, 'GET', '/api/demo/chat', { from });
      }
      return lab.site.web(undefined, 'GET', '/api/demo/chat', { from });
    },
  },
  'api/http/middleware/rate-limit.ts': {
    limit: 1,
    resetS: 1,
    refuse() {
      const log = pino({ level: 'silent' });
      const limiter = createLimiter({ name: 'one', redisUrl: undefined, perAddress: 100, log });
      const limit = { name: 'refused', max: 1, windowMs: 60_000, message: 'too many refusals' };
      const limited = limitRefusals(limiter, limit);
      const state = { identity: { scope: 'one' }, answer: { status: 200 } };
      // Only the parts that the middleware reads.
      const ctx = { state, set: () => undefined } as unknown as Parameters<typeof limited>[0];
      const endless = () => new Promise<void>(() => undefined);
      for (let count = 0; count < 4; count++) void limited(ctx, endless);
      return thrownBy(() => limited(ctx, endless));
    },
  },
  'api/web/demo.ts': {
    limit: 20_000_000,
    resetS: 31 * DAY_S,
    async refuse() {
      await quotaOf('demo', 20_000_000);
      const refused = await demo(newAddress());
      await quotaOf('demo', 0);
      return refused;
    },
  },
  'src/ai/routing/demo-budget.ts': {
    limit: 100_000,
    resetS: DAY_S,
    refuse() {
      const from = newAddress();
      lab.site.dependencies.demoBudget.hold(networksOf(from), 100_000);
      return demo(from);
    },
  },
  'src/ai/usage/quota.ts': {
    limit: 2_000_000,
    resetS: 31 * DAY_S,
    refuse() {
      const quota = new Quota(lab.site.database.db);
      const claim = { callId: randomUUID(), userId: randomUUID(), plan: 'solo' } as const;
      return thrownBy(() => quota.reserve({ ...claim, tokens: 2_000_001 }));
    },
  },
  'src/ai/routing/no-answer-error.ts': {
    limit: 0,
    resetS: 7,
    refuse() {
      const failure = new ProviderError('openai', 'rate_limited', 429, 7_000);
      return Promise.resolve(answerTo(new NoAnswerError(failure, []).refusal));
    },
  },
  'api/backend/ai-chat.ts': {
    limit: 0,
    resetS: 9,
    async refuse() {
      providers.behave('openai', fails(429, undefined, { 'retry-after': '9' }));
      const headers = { 'x-user-plan': 'network', 'x-billing-subscription-id': 'sub_1' };
      const body = { messages: [{ role: 'user', content: 'hello' }], model: 'openai/gpt-4' };
      const refused = await lab.site.backend({ id: randomUUID() }, 'POST', '/api/ai/chat', {
        body,
        headers,
      });
      providers.behave();
      return refused;
    },
  },
  'src/accounts/accounts/sign-in-limits.ts': {
    limit: 5,
    resetS: 2 * MINUTE_S,
    async refuse() {
      const { email } = await lab.site.person();
      const from = newAddress();
      const options = { body: { email, password: 'a wrong password' }, from };
      const guess = () => lab.site.web(undefined, 'POST', '/api/auth/login', options);
      await Promise.all(Array.from({ length: 5 }, guess));
      // The block now lasts one second; the test extends it, for busy machines.
      await queryRows(
        lab.site.database.ownerUrl,
        `UPDATE sign_in_attempts SET blocked_until = blocked_until + interval '1 minute'`,
      );
      return guess();
    },
  },
  'src/accounts/accounts/hashing-limiters.ts': {
    limit: 10,
    resetS: 15,
    async refuse() {
      let end = () => undefined as void;
      const ended = new Promise<void>((resolve) => (end = resolve));
      const by = { owner: 'a greedy site' };
      const greedy = Array.from({ length: 12 }, () => passwordHashing.run(by, () => ended));
      const refused = await thrownBy(() => passwordHashing.run(by, () => ended));
      end();
      await Promise.all(greedy);
      return refused;
    },
  },
  'src/lib/quota-limiter.ts': {
    limit: 3,
    resetS: 5,
    refuse() {
      const limiter = new QuotaLimiter({ perOwner: 3 });
      return thrownBy(() => limiter.take('one', 4));
    },
  },
  'src/money/splits/royalty-splits.ts': {
    limit: MAX_OPEN_SPLITS,
    resetS: MINUTE_S,
    async refuse() {
      const { database, dependencies } = lab.site;
      const { id, agentId, wallet } = await makePayer(database.db, dependencies.secrets);
      const body = {
        userId: id,
        agentId,
        fromAddress: wallet,
        name: 'a song',
        totalAmount: '1',
        recipients: [{ address: newPayee(), share: 100 }],
      };
      const split = () => lab.site.backend(undefined, 'POST', '/api/underground/splits', { body });
      expect(await split()).toMatchObject({ status: 200 });
      await queryRows(
        database.ownerUrl,
        `INSERT INTO royalty_splits (user_id, agent_id, request_key, from_address, chain_id, token_address, name, total_amount)
         SELECT user_id, agent_id, 'one ' || n, from_address, chain_id, token_address, name, total_amount
           FROM royalty_splits, generate_series(2, ${MAX_OPEN_SPLITS}) n WHERE user_id = '${id}'`,
      );
      return split();
    },
  },
  'src/money/sessions/payment-sessions.ts': {
    limit: 1,
    resetS: 60 * MINUTE_S,
    async refuse() {
      const wallet = await lab.wallet(2n * ONE);
      const node = createTestClient({ mode: 'anvil', transport: http(lab.chain.rpcUrl) });
      await node.setCode({ address: wallet.address, bytecode: FALSE_FRIEND });
      const open = async () => {
        const authorization = await lab.sign(wallet, 2n * ONE);
        const body = { address: wallet.address, deposit: '2', authorization };
        return lab.site.web(undefined, 'POST', '/api/wallet/sessions', { body });
      };
      const stop = lab.run();
      expect(await open()).toMatchObject({ status: 503 });
      await stop();
      return open();
    },
  },
  'src/money/gas/gas-budget.ts': {
    limit: 1_000,
    resetS: DAY_S,
    refuse() {
      const { db } = lab.site.database;
      const budget = new GasBudget(db, { perOwner: 1_000, total: 2_000 });
      const wanted = { cause: randomUUID(), gas: 1_001n, userId: randomUUID() };
      return thrownBy(() => db.asPlatform().transaction((tx) => budget.reserve(tx, wanted)));
    },
  },
  'src/agents/model/agent-skills.ts': {
    limit: 3,
    resetS: MINUTE_S,
    refuse() {
      const entries = Object.fromEntries([1, 2, 3, 4].map((n) => [`s${n}`, {}]));
      const config = { runtime: { skills: { entries } } };
      return thrownBy(() => checkSkillLimit(config, { plan: 'label', isAdmin: false }));
    },
  },
  'src/bus/bus-acceptance.ts': {
    limit: 100,
    resetS: DAY_S,
    async refuse() {
      const { database, dependencies } = lab.site;
      const { id } = await lab.site.person();
      for (const sql of [
        insertSql('subscriptions', { ...ROWS.subscriptions?.(id, 1), plan: 'label' }),
        insertSql('agents', ROWS.agents?.(id, 1) ?? {}),
        `INSERT INTO bus_counts (user_id, day, sent)
           VALUES ('${id}', (now() AT TIME ZONE 'UTC')::date, 100)`,
      ]) {
        await queryRows(database.ownerUrl, sql);
      }
      const acceptance = new BusAcceptance({
        database: database.db,
        secrets: dependencies.secrets,
      });
      const agent = `${id}-agent-1`;
      const message = { messageId: 'm', action: 'BOOKING_REQUEST', from: agent, to: agent };
      const owner = { userId: id, isAdmin: false, plan: 'label' } as const;
      return thrownBy(() =>
        acceptance.accept(prepared({ ...message, payload: {}, timestamp: 0 }), owner),
      );
    },
  },
  'src/bus/daily-messages.ts': {
    limit: 100,
    resetS: DAY_S,
    async refuse() {
      const { database } = lab.site;
      const { id } = await lab.site.person();
      return thrownBy(() =>
        database.db
          .asUser(id)
          .transaction((db) => reserveMessages(db, id, { count: 101, daily: 100 })),
      );
    },
  },
  'src/swarms/swarms.ts': {
    limit: MAX_IN_FLIGHT,
    resetS: MINUTE_S,
    async refuse() {
      const { database, dependencies } = lab.site;
      const { id } = await lab.site.person();
      for (const n of [1, 2]) {
        await queryRows(database.ownerUrl, insertSql('agents', ROWS.agents?.(id, n) ?? {}));
      }
      const owner = { userId: id, isAdmin: false, plan: 'solo' } as const;
      const agentIds = [`${id}-agent-1`, `${id}-agent-2`];
      const wanted = { name: 'a', task: 'a', strategy: 'parallel', agentIds } as const;
      const create = () => {
        const by = { actor: id, idempotencyId: randomUUID(), requestId: 'request' };
        const tenant = database.db.asUser(id);
        return dependencies.swarms.create({ ...by, tenant }, owner, wanted);
      };
      for (let made = 0; made < MAX_IN_FLIGHT; made++) await create();
      return thrownBy(create);
    },
  },
  'src/videos/videos.ts': {
    limit: MAX_VIDEOS_UNDER_WAY,
    resetS: MINUTE_S,
    async refuse() {
      const { database } = lab.site;
      const { id } = await lab.site.person();
      const { settings } = lab.site.dependencies;
      const videos = new Videos({
        database: database.db,
        files: new MediaFiles('nowhere'),
        settings: { ...settings.videos, apiToken: 'a token', model: 'a/model' },
      });
      const owner = { userId: id, isAdmin: false, plan: 'solo' } as const;
      const create = () => {
        const by = { actor: id, idempotencyId: randomUUID(), requestId: 'request' };
        return videos.create({ ...by, tenant: database.db.asUser(id) }, owner, { prompt: 'a' });
      };
      for (let made = 0; made < MAX_VIDEOS_UNDER_WAY; made++) await create();
      return thrownBy(create);
    },
  },
  'src/gateway/x402-payments.ts': {
    limit: 1,
    resetS: DAY_S,
    refuse() {
      const { db } = lab.site.database;
      const limits = { daily: ONE, dailyTotal: ONE };
      const payments = new X402Payments(db, new X402Gateway(undefined), limits);
      return thrownBy(() =>
        payments.pay({
          id: randomUUID(),
          requestId: randomUUID(),
          user: { id: randomUUID(), email: 'ada@example.test' },
          payment: {
            ...{ agentId: randomUUID(), amount: ONE + 1n, currency: 'USDC', endpoint: undefined },
            ...{ recipient: `0x${'1'.repeat(40)}`, method: 'default' },
          },
        }),
      );
    },
  },
  'api/web/provision.ts': {
    limit: 3,
    resetS: MINUTE_S,
    refuse() {
      const body = { error: 'Limit', code: 'AGENT_LIMIT_REACHED', current: 3, limit: 3 };
      ofBackend = { status: 402, headers: {}, body };
      return provision();
    },
  },
  'api/web/backend-client.ts': {
    limit: 5,
    resetS: 42,
    refuse() {
      const headers = {
        'ratelimit-limit': '5',
        'ratelimit-remaining': '0',
        'ratelimit-reset': '42',
        'retry-after': '42',
      };
      ofBackend = { status: 429, headers, body: { error: 'Deployment rate limit exceeded.' } };
      return provision();
    },
  },
};

test.each(Object.entries(CASES))(
  'a 429 of %s carries the limit that refused, with nothing remaining and its reset',
  async (_file, { limit, resetS, refuse }) => {
    const { headers, status } = await refuse();
    expect(status).toBe(429);
    const of = (name: string) => headers.get(name);
    expect([of('ratelimit-limit'), of('ratelimit-remaining')]).toEqual([String(limit), '0']);
    expect(of('ratelimit-reset')).toMatch(/^[1-9]\d*$/);
    expect(Number(of('ratelimit-reset'))).toBeLessThanOrEqual(resetS);
    expect(of('retry-after')).toBe(of('ratelimit-reset'));
  },
  60_000,
);

test('every file that makes a 429 has its case here', () => {
  const MAKING =
    /new TooManyRequestsError\(|extends TooManyRequestsError|Error\(\s*429|writeHead\(\s*429/;
  const files = ['api', 'src', 'activities', 'temporal', 'worker', 'workflows'].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((file) => `${folder}/${file}`),
  );
  const making = files.filter(
    (file) =>
      file.endsWith('.ts') &&
      file !== 'src/lib/errors.ts' &&
      MAKING.test(readFileSync(file, 'utf8')),
  );
  expect(making.toSorted()).toEqual(Object.keys(CASES).toSorted());
});
