// Kills parts of the platform while agents work for their owner: scheduled tasks, swarms, skills, verifications.
import { randomUUID } from 'node:crypto';
import { parseArgs } from 'node:util';
import { runBenchmark } from '../../bench/support/cleanups.js';
import { Client } from '../../bench/support/client.js';
import { enterOwnNetwork } from '../../bench/support/own-network.js';
import type { BenchPlatform } from '../../bench/support/platform.js';
import { poll } from '../../dev/poll.js';
import { openAgentsSite } from './agents-site.js';
import { CarefulClient } from './careful-client.js';
import type { Site } from './site.js';
import { planWork, WORK } from './work-plan.js';
import { runWork, type WorkResult, type WorkSite } from './work-round.js';

/** Milliseconds until an agent of the test image runs. */
const RUNNING_MS = 60_000;

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '240' },
    /** The first round's seed; each next round adds one. */
    seed: { type: 'string', default: String(Math.floor(Math.random() * 1_000_000)) },
  },
});
const firstSeed = Number(options.seed);
const plans = Array.from({ length: Number(options.rounds) }, (_, n) => planWork(firstSeed + n));

await enterOwnNetwork();
await runBenchmark(async (atEnd) => {
  const { platform, site } = await openAgentsSite(atEnd);
  const owned = await withOwner(site, platform);
  console.log(`${plans.length} rounds from seed ${firstSeed}`);
  const results: WorkResult[] = [];
  for (const plan of plans) {
    const result = await runWork(owned, plan);
    results.push(result);
    print(result);
  }
  conclude(results);
});

/** Registers a user with two running agents. */
async function withOwner(site: Site, platform: BenchPlatform): Promise<WorkSite> {
  const web = new Client(platform.webUrl, {});
  const login = { email: 'chaos@example.org', password: randomUUID() };
  const { id: userId } = await web.json<{ id: string }>('POST', '/api/register', login);
  const plan = { userId, plan: 'solo' };
  await site.api.ask('POST', '/api/subscriptions/deploy', 'plan', plan);
  const { headers } = await web.send('POST', '/api/auth/login', login);
  web.close();
  const signedIn = new Client(platform.webUrl, {
    cookie: headers['set-cookie']?.[0]?.split(';')[0] ?? '',
  });
  const { key } = await signedIn.json<{ key: string }>('POST', '/api/keys', { name: 'chaos' });
  signedIn.close();
  const owner = new CarefulClient(platform.webUrl, key);
  const agents: string[] = [];
  for (const name of ['first', 'second']) agents.push(await runningAgent(owner, name));
  return { ...site, owner, agents };
}

async function runningAgent(owner: CarefulClient, name: string): Promise<string> {
  interface Found {
    readonly agent: { readonly id: string; readonly status: string };
  }
  const { agent } = await owner.ask<Found>('POST', '/api/agents/provision', name, { name });
  const runs = async () => {
    const found = await owner.ask<Found>('GET', `/api/agents/${agent.id}`, '');
    return found.agent.status === 'running' || undefined;
  };
  if (!(await poll(runs, { timeoutMs: RUNNING_MS, everyMs: 500 }))) {
    throw new Error(`The agent ${name} does not run`);
  }
  return agent.id;
}

function print({ ended, plan, problems }: WorkResult): void {
  const { killAfterMs, kind, part, seed } = plan;
  const how = problems.length > 0 ? 'WRONG' : 'well';
  console.log(`seed ${seed}: ${part} at ${killAfterMs} ms of a ${kind} (${ended}): ${how}`);
  for (const problem of problems) console.log(`  ${problem}`);
}

/** Prints the summary. @throws Error if there is a problem. */
function conclude(results: readonly WorkResult[]): void {
  const counts = Object.keys(WORK).map(
    (kind) => `${kind} ${results.filter(({ plan }) => plan.kind === kind).length}`,
  );
  const wrong = results.filter(({ problems }) => problems.length > 0);
  console.log(`${results.length} rounds: ${counts.join(', ')}; wrong ${wrong.length}`);
  if (wrong.length === 0) return;
  const seeds = wrong.map(({ plan }) => plan.seed).join(' ');
  throw new Error(`Problems found; repeat a seed with --rounds=1 --seed=: ${seeds}`);
}
