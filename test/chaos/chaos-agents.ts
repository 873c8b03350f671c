// Kills parts of the platform and agents in the middle of operations, and checks the outcome.
import path from 'node:path';
import { parseArgs } from 'node:util';
import { Client, Connection } from '@temporalio/client';
import { Database } from '../../src/platform/database/database.js';
import { ensureTestImage } from '../agent-image/ensure-test-image.js';
import { varyTestImage } from '../agent-image/vary-test-image.js';
import { CarefulClient } from './careful-client.js';
import { isPart, type Kill, KILLS, planRound, type RoundPlan } from './plan.js';
import { remainsOf, removeContainers } from './remains.js';
import { type RoundResult, runRound } from './round.js';
import { answersOn, type Site } from './site.js';
import { runBenchmark } from '../../bench/support/cleanups.js';
import { freeSubnetPool } from '../../bench/support/engine.js';
import { makeFolder } from '../../bench/support/folder.js';
import { OwnEngine } from '../../bench/support/own-engine.js';
import { enterOwnNetwork } from '../../bench/support/own-network.js';
import { BenchPlatform } from '../../bench/support/platform.js';

const PORTS = { first: 22_100, last: 22_399 };

/** Settings that differ from the product's, so that a round takes seconds. */
const HASTE = { WATCHDOG_CHECK_INTERVAL: '5s' };

/** Concurrent rounds if each affects only its own agent. */
const BESIDE = 8;

/** Concurrent rounds that kill the API: the other rounds' clients retry. */
const BESIDE_API = 2;

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '210' },
    /** The first round's seed; each next round adds one. */
    seed: { type: 'string', default: String(Math.floor(Math.random() * 1_000_000)) },
  },
});
const firstSeed = Number(options.seed);
const plans = Array.from({ length: Number(options.rounds) }, (_, n) => planRound(firstSeed + n));

await enterOwnNetwork();
await runBenchmark(async (atEnd) => {
  const site = await makeSite(atEnd);
  const settings = Object.entries(HASTE).map(([name, value]) => `${name}=${value}`);
  console.log(`${plans.length} rounds from seed ${firstSeed}, with ${settings.join(' ')}`);
  const results: RoundResult[] = [];
  const run = async (plan: RoundPlan) => {
    const result = await runRound(site, plan);
    results.push(result);
    print(result);
  };
  const inLanes = async (lanes: number, rounds: RoundPlan[]) => {
    const lane = async () => {
      for (let plan = rounds.shift(); plan; plan = rounds.shift()) await run(plan);
    };
    await Promise.all(Array.from({ length: lanes }, lane));
  };
  const withKill = (isSuch: (kill: Kill) => boolean) => plans.filter(({ kill }) => isSuch(kill));
  await inLanes(
    1,
    withKill((kill) => isPart(kill) && kill !== 'api'),
  );
  await inLanes(
    BESIDE_API,
    withKill((kill) => kill === 'api'),
  );
  await inLanes(
    BESIDE,
    withKill((kill) => !isPart(kill)),
  );
  conclude(results, await remainsOf(site, PORTS));
});

async function makeSite(atEnd: (cleanup: () => Promise<void> | void) => void): Promise<Site> {
  const folder = await makeFolder(atEnd);
  const engine = new OwnEngine(folder);
  atEnd(() => engine.stop());
  await engine.start();
  const { docker } = engine;
  const image = await ensureTestImage(docker);
  const versions = {
    good: await varyTestImage(docker, image, 'next', ['LABEL chaos=next']),
    broken: await varyTestImage(docker, image, 'broken', ['ENV EXIT_AT_START=3']),
  };
  const platform = await BenchPlatform.start(path.join(folder, 'platform'), {
    DOCKER_HOST: engine.host,
    AGENT_RUNTIME_IMAGE: image,
    AGENT_VERSIONS: Object.values(versions).join(','),
    AGENT_SUBNET_POOL: await freeSubnetPool(docker),
    AGENT_EGRESS: 'open',
    AGENT_PORT_RANGE: `${PORTS.first}-${PORTS.last}`,
    AGENT_HOST_CAPACITY: '100',
    AGENT_AI_HOST: '127.0.0.1', // these agents make no AI requests
    ...HASTE,
  });
  atEnd(() => removeContainers(docker));
  atEnd(() => platform.stop());
  const database = new Database(platform.databaseUrl, { maxConnections: 4 });
  atEnd(() => database.close());
  const connection = Connection.lazy({ address: platform.temporalAddress });
  atEnd(() => connection.close());
  return {
    hosts: {
      local: {
        docker,
        killEngine: () => engine.kill(),
        startEngine: async () => void (await engine.start()),
        isAnswering: answersOn,
      },
    },
    livingPidOf: (part) => platform.livingPidOf(part),
    database,
    temporal: new Client({ connection }),
    api: new CarefulClient(platform.backendUrl, platform.internalApiKey),
    versions,
  };
}

function print({ plan, killed, told, problems, seconds }: RoundResult): void {
  const { agents, kill, killAfterMs, operation, seed } = plan;
  const what = `${kill} at ${killAfterMs} ms of ${operation} of ${agents.length}`;
  const how = problems.length > 0 ? 'WRONG' : killed ? 'well' : 'well, nothing to kill';
  console.log(`seed ${seed}: ${what}: ${how} (${seconds} s)`);
  for (const each of told) console.log(`  told: ${each}`);
  for (const problem of problems) console.log(`  ${problem}`);
}

/**
 * Prints the summary.
 * @throws Error if there is a problem.
 */
function conclude(results: readonly RoundResult[], remains: readonly string[]): void {
  for (const each of remains) console.log(each);
  const counts = KILLS.map((kind) => {
    const kills = results.filter(({ killed, plan }) => killed && plan.kill === kind);
    return `${kind} ${kills.length}`;
  });
  const wrong = results.filter(({ problems }) => problems.length > 0);
  const missed = results.filter(({ killed }) => !killed).length;
  console.log(
    `${results.length} rounds; kills: ${counts.join(', ')}; nothing to kill ${missed}; wrong ${wrong.length}, left over ${remains.length}`,
  );
  if (wrong.length + remains.length === 0) return;
  const seeds = wrong.map(({ plan }) => plan.seed).join(' ');
  throw new Error(`Problems found; repeat a seed with --rounds=1 --seed=: ${seeds}`);
}
