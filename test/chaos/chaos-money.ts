// Pays while parts of the platform and its chain fail, and checks that each recipient is paid once.
import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { parseArgs } from 'node:util';
import type { Hex } from 'viem';
import { runBenchmark, type AtEnd } from '../../bench/support/cleanups.js';
import { Client } from '../../bench/support/client.js';
import { makeFolder } from '../../bench/support/folder.js';
import { BenchPlatform } from '../../bench/support/platform.js';
import { startPaymentProcessor } from '../../dev/billing/payment-processor.js';
import { poll } from '../../dev/poll.js';
import { connectDocker } from '../../src/docker/containers/docker-client.js';
import { Database } from '../../src/platform/database/database.js';
import { ensureTestImage } from '../agent-image/ensure-test-image.js';
import { agentPlaces } from '../support/agent-places.js';
import { removeRemains } from '../support/docker-remains.js';
import type { Buyer } from './bought-credits.js';
import { depositFor } from './bought-session.js';
import { startBusReceiver } from './bus-receiver.js';
import { CarefulClient } from './careful-client.js';
import { ChaosChain, CONFIRMATIONS } from './chaos-chain.js';
import { MONEY_FAULTS, planMoneyRound, type MoneyPart } from './money-plan.js';
import { runMoneyRound, type MoneyResult, type MoneySite, type Wallet } from './money-round.js';

/** Settings different from the product's, so that a round takes seconds. */
const HASTE = {
  CHAIN_FEE_BUMP_AFTER: '1s',
  WATCHDOG_CHECK_INTERVAL: '5s',
  SESSION_SETTLE_THRESHOLD: '0.005',
};

/** Gas for any number of rounds, which have one user and one client. */
const PLENTY = '1000000000000';

const READY_MS = 120_000;

/** Part of the idempotency keys: agent ids are derived from them, and other runs share the engine. */
const RUN = randomUUID();

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '200' },
    /** The first round's seed; each next round adds one. */
    seed: { type: 'string', default: String(Math.floor(Math.random() * 1_000_000)) },
  },
});
const firstSeed = Number(options.seed);
const plans = Array.from({ length: Number(options.rounds) }, (_, n) =>
  planMoneyRound(firstSeed + n),
);

await runBenchmark(async (atEnd) => {
  const site = await makeSite(atEnd);
  const settings = Object.entries(HASTE).map(([name, value]) => `${name}=${value}`);
  console.log(`${plans.length} rounds from seed ${firstSeed}, with ${settings.join(' ')}`);
  const results: MoneyResult[] = [];
  for (const plan of plans) {
    const result = await runMoneyRound(site, plan);
    results.push(result);
    print(result);
  }
  conclude(results);
});

async function makeSite(atEnd: AtEnd): Promise<MoneySite> {
  const folder = await makeFolder(atEnd);
  const docker = connectDocker(process.env.DOCKER_HOST);
  const chain = await ChaosChain.start(folder, atEnd);
  const { escrow, treasury, usdc } = chain.local;
  // Deposited long before any fault: a node with an older state gets the transaction again.
  const known = await depositFor(chain, plans.length);
  const processor = await startPaymentProcessor();
  atEnd(() => processor.close());
  const receiver = await startBusReceiver(atEnd);
  const common = {
    ...processor.env,
    OUTBOUND_ALLOW: receiver.host,
    CHAIN_RPC_URL: chain.proxy.url,
    CHAIN_CONFIRMATIONS: String(CONFIRMATIONS),
    USDC_CONFIRMATIONS: String(CONFIRMATIONS),
    USDC_ADDRESS: usdc.address,
    TREASURY_ADDRESS: treasury,
    ESCROW_ADDRESS: escrow,
    OPERATOR_PRIVATE_KEY: chain.operatorKey,
    GAS_A_DAY: PLENTY,
    GAS_A_DAY_TOTAL: PLENTY,
  };
  const platform = await BenchPlatform.start(path.join(folder, 'platform'), {
    ...common,
    AGENT_RUNTIME_IMAGE: await ensureTestImage(docker),
    ...agentPlaces(),
    AGENT_EGRESS: 'open',
    AGENT_HOST_CAPACITY: '100',
    AGENT_AI_HOST: '127.0.0.1', // these agents make no AI requests
    // Each request of the careful client has an address of its own, so that limits per address do not apply.
    TRUSTED_PROXIES: '127.0.0.1/32',
    MANAGE_DOCKER: 'never',
    ...HASTE,
  });
  atEnd(() => removeRemains(docker, platform.installation));
  atEnd(() => platform.stop());
  const database = new Database(platform.databaseUrl, { maxConnections: 4 });
  atEnd(() => database.close());
  const web = new CarefulClient(platform.webUrl);
  const api = new CarefulClient(platform.backendUrl, platform.internalApiKey);
  const [parentId, otherId] = [await makeAgent(api, 'parent'), await makeAgent(api, 'other')];
  for (const id of [parentId, otherId]) {
    const body = { url: receiver.url };
    await api.ask('PUT', `/api/underground/webhooks/${id}`, `webhook-${id}`, body);
  }
  return {
    run: RUN,
    api,
    web,
    chain,
    database,
    known,
    processor,
    receiver,
    buyer: () => makeBuyer(platform.webUrl),
    parentId,
    wallets: [await makeWallet(api, parentId), await makeWallet(api, otherId)],
    livingPidOf: (part: MoneyPart) =>
      part === 'chain' ? chain.livingPid() : platform.livingPidOf(part),
  };
}

async function makeAgent(api: CarefulClient, name: string): Promise<string> {
  const { id } = await api.ask<{ id: string }>('POST', '/api/agents', `${RUN}-${name}`, { name });
  let reported = '';
  const isReady = await poll(
    async () => {
      const { status, text } = await api.once('GET', `/api/agents/${id}`, `${name}-ready`);
      reported = text;
      return (status === 200 && /"status":"active"/.test(text)) || undefined;
    },
    { timeoutMs: READY_MS, everyMs: 250 },
  );
  if (!isReady) throw new Error(`The agent ${name} did not start: ${reported}`);
  return id;
}

async function makeBuyer(webUrl: string): Promise<Buyer> {
  const web = new Client(webUrl, {});
  try {
    const [email, password] = [`${randomUUID()}@example.org`, randomUUID()];
    const { id } = await web.json<{ id: string }>('POST', '/api/register', { email, password });
    const { headers } = await web.send('POST', '/api/auth/login', { email, password });
    return { id, cookie: headers['set-cookie']?.[0]?.split(';')[0] ?? '' };
  } finally {
    web.close();
  }
}

async function makeWallet(api: CarefulClient, agentId: string): Promise<Wallet> {
  const body = { userId: 'operator', agentId };
  const path = '/api/underground/wallets';
  const { address } = await api.ask<{ address: Hex }>('POST', path, `wallet-${agentId}`, body);
  return { agentId, address };
}

function print({ plan, problems, seconds, reported }: MoneyResult): void {
  const { cloneAfterMs, credits, fault, faultAfterMs, kill, messages, seed, session, splits } =
    plan;
  const { changes } = plan.subscription;
  const what = [
    `${splits.length} splits`,
    ...(cloneAfterMs === undefined ? [] : ['a clone']),
    `a session of ${session.purchases} purchases`,
    `${credits.purchases.length} purchases of credits`,
    ['a plan', ...changes].join(' '),
    `${messages.length} messages`,
  ].join(', ');
  const when = kill ? `${kill.part} after ${kill.afterMs} ms` : `at ${faultAfterMs} ms`;
  const how = problems.length > 0 ? 'WRONG' : 'well';
  console.log(`seed ${seed}: ${fault} (${when}) of ${what}: ${how} (${seconds} s)`);
  for (const each of reported) console.log(`  told: ${each}`);
  for (const problem of problems) console.log(`  ${problem}`);
}

/**
 * Prints the summary.
 * @throws Error if there is a problem.
 */
function conclude(results: readonly MoneyResult[]): void {
  const wrong = results.filter(({ problems }) => problems.length > 0);
  const faults = MONEY_FAULTS.map((fault) => {
    const count = results.filter(({ plan }) => plan.fault === fault).length;
    return `${fault} ${count}`;
  });
  console.log(`${results.length} rounds; ${faults.join(', ')}; wrong ${wrong.length}`);
  if (wrong.length === 0) return;
  const seeds = wrong.map(({ plan }) => plan.seed).join(' ');
  throw new Error(`Problems found; repeat a seed with --rounds=1 --seed=: ${seeds}`);
}
