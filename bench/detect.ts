// Measures the time to detect a death or a hang and the time to recover, also without Temporal.
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Database } from '../src/platform/database/database.js';
import { ensureTestImage } from '../test/agent-image/ensure-test-image.js';
import { runBenchmark } from './support/cleanups.js';
import { DeathListener } from './support/death-listener.js';
import { type Deed, hangGateway, killContainer, killGateway } from './support/deeds.js';
import { type BenchEngine, freeSubnetPool, obtainEngine } from './support/engine.js';
import { makeFolder } from './support/folder.js';
import { PlatformAgents } from './support/platform-agents.js';
import { BenchPlatform } from './support/platform.js';
import { type Recovery, recoveryAfter } from './support/recoveries.js';
import { figure, median, quantile } from './support/statistics.js';
import { printTable } from './support/table.js';

/**
 * Milliseconds: `AIM_DETECTED` for 99 % of deaths, `AIM_HEALED` for each recovery beyond the delays of
 * the spec.
 */
const AIM_DETECTED = 1_000;
const AIM_HEALED = 5_000;

/** Milliseconds of a repair by the spec: 5 s before the start and 30 s of grace after it. */
const ORDERED_MS = 35_000;

/** Milliseconds of a repair without Temporal: the host waits 30 s before it repairs by itself. */
const ORDERED_AWAY_MS = 30_000 + ORDERED_MS;

/** Milliseconds until the last agent of a wave should have recovered without Temporal. */
const AWAY_MS = ORDERED_AWAY_MS + 20_000;

/** Milliseconds between two injected faults, so that each fault is measured separately. */
const SPREAD_MS = 500;

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '50' },
    agents: { type: 'string', default: '25' },
    /** Containers killed at once while Temporal is stopped; 0 keeps Temporal running. */
    away: { type: 'string', default: '10' },
    /** Value of WATCHDOG_CHECK_INTERVAL, which limits the detection of a hang. */
    interval: { type: 'string', default: '10s' },
  },
});

const DEEDS: readonly { name: string; deed: Deed; isDeath: boolean }[] = [
  { name: 'docker kill', deed: killContainer, isDeath: true },
  { name: 'kill -9 of the gateway', deed: killGateway, isDeath: true },
  { name: 'hang', deed: hangGateway, isDeath: false },
];

/** Milliseconds until the supervisor of each new agent watches it. */
const WATCHED_MS = 10_000;

interface Measured extends Recovery {
  /** Milliseconds until dockerode's own listener reported the same death. */
  readonly received: number;
}

await runBenchmark(async (atEnd) => {
  const folder = await makeFolder(atEnd);
  const engine = await obtainEngine(folder, atEnd);
  const platform = await BenchPlatform.start(path.join(folder, 'platform'), {
    DOCKER_HOST: engine.host,
    AGENT_RUNTIME_IMAGE: await ensureTestImage(engine.docker),
    AGENT_SUBNET_POOL: await freeSubnetPool(engine.docker),
    AGENT_EGRESS: 'open',
    AGENT_PORT_RANGE: '22100-22999',
    AGENT_HOST_CAPACITY: '900',
    WATCHDOG_CHECK_INTERVAL: options.interval,
    // Each agent is killed several times and must be repaired every time.
    WATCHDOG_CRASH_LOOP_THRESHOLD: '100',
  });
  const agents = new PlatformAgents(platform, engine);
  atEnd(() => agents.removeRest());
  atEnd(() => platform.stop());
  const database = new Database(platform.databaseUrl, { maxConnections: 2 });
  atEnd(() => database.close());
  const listener = await DeathListener.on(engine.docker);
  atEnd(() => listener.end());

  const { ids } = await agents.burst(Number(options.agents));
  const away = await killWithoutTemporal(
    engine,
    platform,
    database,
    ids.slice(0, Number(options.away)),
  );
  const times = Number(options.rounds);
  const harms = DEEDS.flatMap((each) => Array.from({ length: times }, () => each));
  const rounds: Measured[] = [];
  while (rounds.length < harms.length) {
    const wave = harms.slice(rounds.length, rounds.length + ids.length);
    rounds.push(...(await hurt(engine, database, listener, ids, wave)));
  }
  print(
    DEEDS.map(({ name, isDeath }, index) => ({
      name,
      isDeath,
      rounds: rounds.slice(index * times, (index + 1) * times),
    })),
  );
  if (away.length > 0) printAway(away);
});

/**
 * Kills containers while Temporal is stopped.
 *
 * @returns for each agent the milliseconds from the end of its container to its recovery.
 */
async function killWithoutTemporal(
  { docker }: BenchEngine,
  platform: BenchPlatform,
  database: Database,
  ids: readonly string[],
): Promise<number[]> {
  if (ids.length === 0) return [];
  await delay(WATCHED_MS);
  const temporal = platform.pidOf('temporal');
  process.kill(temporal, 'SIGSTOP');
  const deeds: { id: string; at: number }[] = [];
  try {
    for (const id of ids) deeds.push({ id, at: await killContainer(docker, id) });
    await delay(AWAY_MS);
  } finally {
    process.kill(temporal, 'SIGCONT');
  }
  const recoveries = deeds.map(({ id, at }) => recoveryAfter(database, id, at));
  return (await Promise.all(recoveries)).map(({ detected, healed }) => detected + healed);
}

/** Injects a fault into one agent after the other and waits until all have recovered. */
async function hurt(
  { docker }: BenchEngine,
  database: Database,
  listener: DeathListener,
  ids: readonly string[],
  harms: readonly { readonly deed: Deed }[],
): Promise<Measured[]> {
  const recovering: Promise<Measured>[] = [];
  for (const [index, { deed }] of harms.entries()) {
    const id = ids[index];
    if (id === undefined) throw new RangeError('Too few agents for the faults');
    const deedAt = await deed(docker, id);
    recovering.push(
      recoveryAfter(database, id, deedAt).then((recovery) => ({
        ...recovery,
        received: listener.after(id, deedAt),
      })),
    );
    await delay(SPREAD_MS);
  }
  return Promise.all(recovering);
}

function printAway(took: readonly number[]): void {
  const over = took.map((ms) => ms - ORDERED_AWAY_MS);
  console.log(
    `\nWithout Temporal, from the end of each of ${took.length} containers that were killed at`,
  );
  console.log(`once to healthy, in ms over the ${ORDERED_AWAY_MS} that are ordered:\n`);
  printTable(
    ['deed', 'median', 'p99', 'aim'],
    [['docker kill', figure(median(over)), figure(quantile(over, 0.99)), AIM_HEALED]],
  );
}

function print(
  measured: readonly { name: string; isDeath: boolean; rounds: readonly Measured[] }[],
): void {
  console.log(`\nFrom the deed to detected, in ms; ${options.rounds} times each:\n`);
  printTable(
    ['deed', 'median', 'p99', 'aim of p99', 'dockerode alone', 'ours over it'],
    measured.map(({ name, isDeath, rounds }) => {
      const detected = rounds.map((each) => each.detected);
      const received = isDeath ? median(rounds.map((each) => each.received)) : Number.NaN;
      return [
        name,
        figure(median(detected)),
        figure(quantile(detected, 0.99)),
        isDeath ? AIM_DETECTED : '-',
        figure(received),
        figure(median(detected) / received),
      ];
    }),
  );
  console.log(`A hang is seen by a check, which is made every ${options.interval} here.\n`);
  console.log(`From detected to healthy, in ms over the ${ORDERED_MS} that the spec orders:\n`);
  printTable(
    ['deed', 'median', 'p99', 'aim'],
    measured.map(({ name, rounds }) => {
      const over = rounds.map(({ healed }) => healed - ORDERED_MS);
      return [name, figure(median(over)), figure(quantile(over, 0.99)), AIM_HEALED];
    }),
  );
}
