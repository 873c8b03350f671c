// Measures the cost of supervisors of healthy agents: the worker, the Temporal server and PostgreSQL as
// `npm start` runs them, with real workflows, activities and probes. Only the Docker engine is simulated
// at its socket (bench/support/quiet-host.ts), because so many containers do not fit.
import { randomBytes, randomUUID } from 'node:crypto';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { installationOf } from '../src/platform/secrets/key-ring.js';
import type { BareProbes } from './support/bare-probes.js';
import { forkUntilMessage } from './support/child.js';
import { runBenchmark } from './support/cleanups.js';
import { Client } from './support/client.js';
import { makeFolder } from './support/folder.js';
import { BenchPlatform } from './support/platform.js';
import { QuietHost } from './support/quiet-host-process.js';
import { figure } from './support/statistics.js';
import { SupervisedAgents } from './support/supervised-agents.js';
import { printTable } from './support/table.js';

const MEGABYTE = 1_000_000;
/** Cores and megabytes for 10,000 agents. */
const AIM_CORES = 0.5;
const AIM_MEGABYTES = 1_500;
/** History events a day of a healthy agent. */
const AIM_EVENTS_A_DAY = 20;

/** Seconds of the bare loop, whose load is constant. */
const BARE_SECONDS = 10;

const { values: options } = parseArgs({
  options: {
    agents: { type: 'string', default: '1000,5000,10000' },
    // Equals the interval between two checks of an agent, so that each agent is checked once.
    seconds: { type: 'string', default: '120' },
    interval: { type: 'string', default: '120' },
    settle: { type: 'string', default: '15' },
  },
});
const sizes = options.agents.split(',').map(Number);
const seconds = Number(options.seconds);

interface Figures {
  readonly started: number;
  readonly expected: number;
  readonly made: number;
  readonly inspections: number;
  readonly worker: number;
  readonly memory: number;
  readonly temporal: number;
  readonly postgres: number;
  readonly events: number;
  readonly history: number;
  readonly bare: BareProbes;
}

await runBenchmark(async (atEnd) => {
  const folder = await makeFolder(atEnd);
  const encryptionKey = randomBytes(32);
  const host = await QuietHost.start(Math.max(...sizes), installationOf(encryptionKey));
  atEnd(() => host.stop());
  const platform = await BenchPlatform.start(path.join(folder, 'data'), {
    DOCKER_HOST: host.dockerHost,
    ENCRYPTION_KEY: encryptionKey.toString('base64'),
    AGENT_EGRESS: 'open',
    AGENT_HOST_CAPACITY: String(Math.max(...sizes)),
    AGENT_RUNTIME_IMAGE: 'quiet',
    WATCHDOG_CHECK_INTERVAL: `${options.interval}s`,
  });
  atEnd(() => platform.stop());
  const agents = await SupervisedAgents.of(platform, await register(platform));
  atEnd(() => agents.close());

  const columns: Figures[] = [];
  let count = 0;
  for (const size of sizes) {
    const added = await agents.insert(host.ports.slice(count, size));
    await host.run(added);
    const started = await agents.supervise(added);
    count = size;
    console.log(
      `${count} agents are supervised, the last ${added.length} after ${figure(started)} s.`,
    );
    const figures = await measure(platform, host, agents, { count, started });
    columns.push(figures);
    console.log(
      `${figure(figures.made)} checks a second: worker ${figure(figures.worker)} cores and` +
        ` ${figure(figures.memory / MEGABYTE)} MB, Temporal ${figure(figures.temporal)} cores.`,
    );
  }
  print(columns);
});

async function register(platform: BenchPlatform): Promise<string> {
  const web = new Client(platform.webUrl, {});
  const credentials = { email: 'bench@example.org', password: randomUUID() };
  const { id } = await web.json<{ id: string }>('POST', '/api/register', credentials);
  web.close();
  return id;
}

async function measure(
  platform: BenchPlatform,
  host: QuietHost,
  agents: SupervisedAgents,
  { count, started }: { count: number; started: number },
): Promise<Figures> {
  await delay(Number(options.settle) * 1_000);
  const eventsBefore = await agents.historyEvents();
  const [countsBefore, before] = [await host.counts(), await platform.usage()];
  const from = performance.now();
  await delay(seconds * 1_000);
  const [counts, after] = [await host.counts(), await platform.usage()];
  const took = (performance.now() - from) / 1_000;
  const events = await agents.historyEvents();
  const cores = (part: string) => ((after[part]?.cpu ?? 0) - (before[part]?.cpu ?? 0)) / took;
  const made = (counts.probes - countsBefore.probes) / took;
  const rate = count / Number(options.interval);
  const ports = host.ports.slice(0, count).join(',');
  const bareSeconds = Math.min(seconds, BARE_SECONDS);
  const { message: bare } = await forkUntilMessage<BareProbes>(
    'bare-probes',
    [ports, String(made), String(bareSeconds)],
    { seconds: bareSeconds },
  );
  return {
    started,
    expected: rate,
    made,
    inspections: (counts.inspections - countsBefore.inspections) / took,
    worker: cores('worker'),
    memory: after.worker?.memory ?? Number.NaN,
    temporal: cores('Temporal'),
    postgres: cores('PostgreSQL'),
    events: ((events.sum - eventsBefore.sum) / events.of / took) * 3_600,
    history: events.median,
    bare,
  };
}

function print(columns: readonly Figures[]): void {
  const row = (name: string, of: (figures: Figures) => number, aim: string | number = '') => [
    name,
    ...columns.map((figures) => figure(of(figures))),
    aim,
  ];
  const bareCores = ({ bare }: Figures) => bare.cpu / bare.seconds;
  console.log(
    `\nHealthy agents over ${seconds} s, checked every ${options.interval} s; one worker; the` +
      ' Docker engine is a stub that speaks its API, all else is real:\n',
  );
  printTable(
    ['supervisors', ...sizes.map(String), 'aim, at most'],
    [
      row('worker, cores', ({ worker }) => worker, AIM_CORES),
      row('worker, MB', ({ memory }) => memory / MEGABYTE, AIM_MEGABYTES),
      row('Temporal, cores', ({ temporal }) => temporal),
      row('PostgreSQL, cores', ({ postgres }) => postgres),
      row(
        'history events of an agent an hour',
        ({ events }) => events,
        figure(AIM_EVENTS_A_DAY / 24),
      ),
      row('history events of an agent so far', ({ history }) => history),
      row('probes a second, as they are due', ({ expected }) => expected),
      row('probes a second, made', ({ made }) => made),
      row('inspections a second', ({ inspections }) => inspections),
      row('seconds until the added ones watch', ({ started }) => started),
      row('bare loop of the same probes, cores', bareCores),
      row('bare loop, MB', ({ bare }) => bare.memory / MEGABYTE),
      row('bare loop, probes a second', ({ bare }) => bare.probes / bare.seconds),
      row('worker over the bare loop', (each) => each.worker / bareCores(each)),
    ],
  );
}
