// Measures the time until all agents run after the engine was killed and restarted, and whether any is
// given up: with small agents, with agents that compute for long before they listen, and with real ones.
import { cpus } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { Op } from 'sequelize';
import { ensureAgentImage } from '../dev/agent-image/build-openclaw.js';
import { poll } from '../dev/poll.js';
import { readSettings } from '../dev/settings.js';
import { Database } from '../src/platform/database/database.js';
import { withTag } from '../src/docker/containers/image-name.js';
import { LABEL } from '../src/docker/containers/container-spec.js';
import { ensureTestImage } from '../test/agent-image/ensure-test-image.js';
import { varyTestImage } from '../test/agent-image/vary-test-image.js';
import { BareAgents } from './support/bare-agents.js';
import { runBenchmark, type AtEnd } from './support/cleanups.js';
import { freeSubnetPool } from './support/engine.js';
import { makeFolder } from './support/folder.js';
import { OwnEngine } from './support/own-engine.js';
import { enterOwnNetwork } from './support/own-network.js';
import { PlatformAgents } from './support/platform-agents.js';
import { BenchPlatform } from './support/platform.js';
import { figure } from './support/statistics.js';
import { printTable } from './support/table.js';

/** Milliseconds from the engine's return until all small agents are in their desired state. */
const AIM = 30_000;

/** Concurrent calls to the engine, as many as a worker makes. */
const PARALLEL = 40;

/** Agents created concurrently before the measurement. */
const BURST = 20;

const TIMEOUT_MS = 300_000;

const { values: options } = parseArgs({
  options: {
    image: { type: 'string', default: 'small,slow,openclaw' },
    /** Agents of the small image; the other images get at most twelve. */
    agents: { type: 'string', default: '100' },
    /** Seconds of one core that a slow agent uses before it listens. */
    slow: { type: 'string', default: '15' },
  },
});
const small = Number(options.agents);
const heavy = Math.min(small, 12);

interface Reboot {
  readonly image: string;
  readonly count: number;
  readonly running: number;
  /** Milliseconds from the engine's return until all agents run. */
  readonly took: number;
  /** Transitions to these states since the engine was killed. */
  readonly degraded: number;
  readonly crashLoops: number;
}

await enterOwnNetwork();
await runBenchmark(async (atEnd) => {
  const folder = await makeFolder(atEnd);
  const engine = new OwnEngine(folder);
  atEnd(() => engine.stop());
  await engine.start();
  const reboots: Reboot[] = [];
  for (const name of options.image.split(',')) {
    const count = name === 'small' ? small : heavy;
    reboots.push(await reboot({ engine, folder, name, count }, atEnd));
  }
  console.log(`\nFrom the engine's return until all agents answer, on ${cpus().length} cores:\n`);
  printTable(
    ['image', 'running', 'ms', 'aim', 'degraded', 'crash loops'],
    reboots.map(({ image, count, running, took, degraded, crashLoops }) => [
      image,
      `${running} of ${count}`,
      figure(took),
      image === 'small' ? AIM : '',
      degraded,
      crashLoops,
    ]),
  );
  const ours = reboots.find(({ image }) => image === 'small');
  if (ours) await compare(engine, ours.took, atEnd);
});

interface Scene {
  readonly engine: OwnEngine;
  readonly folder: string;
  readonly name: string;
  readonly count: number;
}

async function reboot({ engine, folder, name, count }: Scene, atEnd: AtEnd): Promise<Reboot> {
  const platform = await BenchPlatform.start(path.join(folder, name), {
    DOCKER_HOST: engine.host,
    AGENT_RUNTIME_IMAGE: await imageOf(name, engine),
    AGENT_SUBNET_POOL: await freeSubnetPool(engine.docker),
    AGENT_EGRESS: 'open',
    AGENT_PORT_RANGE: '22100-22999',
    AGENT_HOST_CAPACITY: '900',
  });
  const agents = new PlatformAgents(platform, engine);
  atEnd(() => agents.removeRest());
  atEnd(() => platform.stop());
  const database = new Database(platform.databaseUrl, { maxConnections: 2 });
  atEnd(() => database.close());

  const ids: string[] = [];
  while (ids.length < count) {
    ids.push(...(await agents.burst(Math.min(BURST, count - ids.length))).ids);
  }
  await engine.kill();
  const killedAt = new Date();
  const returnedAt = await engine.start();
  const took = (await allBack(database, killedAt, count)) - returnedAt;
  // Excludes the containers that the platform itself runs briefly to measure volumes.
  const filters = { status: ['running'], label: [LABEL.agent] };
  const running = await engine.docker.listContainers({ filters });
  const turned = (toState: 'degraded' | 'crash_loop') =>
    database
      .asPlatform()
      .transaction((db) =>
        db.WatchdogTransition.count({ where: { toState, at: { [Op.gt]: killedAt } } }),
      );
  const [degraded, crashLoops] = [await turned('degraded'), await turned('crash_loop')];
  await agents.remove(ids);
  await platform.stop();
  return { image: name, count, running: running.length, took, degraded, crashLoops };
}

async function imageOf(name: string, { docker }: OwnEngine): Promise<string> {
  if (name === 'openclaw') {
    const { agents, process: own } = readSettings(process.env);
    const { runtimeVersion: version } = agents;
    const log = (line: string) => console.log(`  ${line}`);
    return ensureAgentImage({ docker, version, cacheDir: own.cacheDir, log });
  }
  const image = await ensureTestImage(docker);
  if (name === 'small') return image;
  const computes = [`ENV START_WORK_MS=${Number(options.slow) * 1_000}`];
  return withTag(image, await varyTestImage(docker, image, `slow-${options.slow}`, computes));
}

/** Measures the time that bare dockerode needs for the same number of small agents. */
async function compare(engine: OwnEngine, ours: number, atEnd: AtEnd): Promise<void> {
  const image = await ensureTestImage(engine.docker);
  const bare = await BareAgents.on(engine.docker, image, []);
  atEnd(() => bare.removeAll());
  for (let made = 0; made < small; made += BURST) {
    const burst = Array.from({ length: Math.min(BURST, small - made) }, () => bare.likeOurs());
    await Promise.all(burst);
  }
  const alone = await bare.startAgain(PARALLEL);
  console.log(`\n${small} small agents, from the engine's return until all answer:\n`);
  printTable(
    ['way', 'running', 'ms', 'ours over it', 'aim'],
    [
      ['the platform', `${small} of ${small}`, figure(ours), '', AIM],
      [
        `dockerode, ${PARALLEL} at a time`,
        `${small} of ${small}`,
        figure(alone),
        figure(ours / alone),
        '',
      ],
    ],
  );
}

/** Returns when the last agent was recorded as running again, in Unix milliseconds. */
async function allBack(database: Database, killedAt: Date, count: number): Promise<number> {
  const at = await poll(
    async () => {
      const back = await database.asPlatform().transaction((db) =>
        db.WatchdogTransition.findAll({
          where: { toState: 'running', at: { [Op.gt]: killedAt } },
        }),
      );
      const first = new Map(back.map((row) => [row.agentId, row.at.getTime()]));
      return first.size < count ? undefined : Math.max(...first.values());
    },
    { timeoutMs: TIMEOUT_MS, everyMs: 500 },
  );
  if (at === undefined) throw new Error('Some agents did not return');
  return at;
}
