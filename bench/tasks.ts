// Measures scheduled tasks on the platform as `npm start` runs it: the rate of runs that are due in the same
// minute, relative to bare schedules with one activity each, and the worker's memory for idle tasks. Only the
// Docker engine and the agents, which answer at once, are simulated (bench/support/quiet-host.ts).
import { randomBytes, randomUUID } from 'node:crypto';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Client as TemporalClient, Connection } from '@temporalio/client';
import { Database } from '../src/platform/database/database.js';
import { installationOf, ringOf } from '../src/platform/secrets/key-ring.js';
import { SecretBox } from '../src/platform/secrets/secret-box.js';
import { BareSchedules } from './support/bare-schedule-rounds.js';
import { runBenchmark, type AtEnd } from './support/cleanups.js';
import { Client } from './support/client.js';
import { makeFolder } from './support/folder.js';
import { BenchPlatform } from './support/platform.js';
import { QuietHost } from './support/quiet-host-process.js';
import { figure, median } from './support/statistics.js';
import { SupervisedAgents } from './support/supervised-agents.js';
import { printTable } from './support/table.js';
import { TaskRounds } from './support/task-rounds.js';

const MEGABYTE = 1_000_000;

/** Minimum share of the bare schedules' rate. */
const AIM_RATE = 0.7;
/** Tasks made before the first reading of memory, so that V8 has already compiled and sized for that work. */
const WARM_UP = 1_000;
/** Maximum share by which idle tasks raise the worker's memory. */
const AIM_MEMORY = 0.05;

const { values: options } = parseArgs({
  options: {
    /** Tasks due in the same minute, each of its own agent. */
    tasks: { type: 'string', default: '1000' },
    rounds: { type: 'string', default: '3' },
    idle: { type: 'string', default: '10000' },
    /** Seconds before each reading of memory. */
    settle: { type: 'string', default: '30' },
  },
});
const count = Number(options.tasks);

interface Rates {
  readonly ours: number;
  readonly bare: number;
}

await runBenchmark(async (atEnd) => {
  const encryptionKey = randomBytes(32);
  const host = await QuietHost.start(count, installationOf(encryptionKey));
  atEnd(() => host.stop());
  const platform = await startPlatform(host, encryptionKey, atEnd);
  const database = new Database(platform.databaseUrl, { maxConnections: 4 });
  atEnd(() => database.close());
  const supervised = await SupervisedAgents.of(platform, await register(platform));
  atEnd(() => supervised.close());
  const agents = await supervised.insert(host.ports);
  await host.run(agents);
  await supervised.supervise(agents);
  const tasks = await TaskRounds.open(database, new SecretBox(ringOf(encryptionKey)), agents);
  const { temporalAddress } = platform;
  const connection = await Connection.connect({ address: temporalAddress });
  atEnd(() => connection.close());
  const bare = await BareSchedules.open(new TemporalClient({ connection }), temporalAddress, atEnd);

  const rates: Rates[] = [];
  for (let round = 0; round <= Number(options.rounds); round++) {
    const each = { ours: await tasks.measure(), bare: await bare.measure(count) };
    console.log(`round ${round}: ${figure(each.ours)} and ${figure(each.bare)} runs a second`);
    // The first round is not measured: V8 has not compiled the code yet.
    if (round > 0) rates.push(each);
  }
  if (rates.length > 0) printRates(rates);
  await printMemory(tasks, platform);
});

async function startPlatform(host: QuietHost, key: Buffer, atEnd: AtEnd): Promise<BenchPlatform> {
  const folder = await makeFolder(atEnd);
  const platform = await BenchPlatform.start(path.join(folder, 'data'), {
    DOCKER_HOST: host.dockerHost,
    ENCRYPTION_KEY: key.toString('base64'),
    AGENT_EGRESS: 'open',
    AGENT_HOST_CAPACITY: String(count),
    AGENT_RUNTIME_IMAGE: 'quiet',
    WATCHDOG_CHECK_INTERVAL: '120s',
  });
  atEnd(() => platform.stop());
  return platform;
}

async function register(platform: BenchPlatform): Promise<string> {
  const web = new Client(platform.webUrl, {});
  const credentials = { email: 'bench@example.org', password: randomUUID() };
  const { id } = await web.json<{ id: string }>('POST', '/api/register', credentials);
  web.close();
  return id;
}

function printRates(rates: readonly Rates[]): void {
  const ours = median(rates.map((each) => each.ours));
  const bare = median(rates.map((each) => each.bare));
  console.log(`\n${count} due in the same minute, medians of ${rates.length} rounds in turns:\n`);
  printTable(
    ['way', 'runs a second', 'over bare', 'aim'],
    [
      ['scheduled tasks', figure(ours), figure(ours / bare), AIM_RATE],
      ['  bare schedules with one activity', figure(bare), '', ''],
    ],
  );
}

async function printMemory(tasks: TaskRounds, platform: BenchPlatform): Promise<void> {
  const memory = async () => {
    await delay(Number(options.settle) * 1_000);
    return (await platform.usage()).worker?.memory ?? Number.NaN;
  };
  await tasks.addIdle(WARM_UP);
  const before = await memory();
  const seconds = await tasks.addIdle(Number(options.idle));
  const after = await memory();
  console.log(`\n${options.idle} idle tasks, whose schedules took ${figure(seconds)} s:\n`);
  printTable(
    ["worker's memory", 'MB', 'more', 'aim, at most'],
    [
      [`with ${WARM_UP} others alone`, figure(before / MEGABYTE), '', ''],
      ['with them as well', figure(after / MEGABYTE), figure(after / before - 1), AIM_MEMORY],
    ],
  );
}
