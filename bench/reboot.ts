// How soon all agents are back after the engine was killed and started again.
import path from 'node:path';
import { parseArgs } from 'node:util';
import { Op } from 'sequelize';
import { poll } from '../dev/poll.js';
import { Database } from '../src/database/database.js';
import { ensureTestImage } from '../test/agent-image/ensure-test-image.js';
import { BareAgents } from './support/bare-agents.js';
import { runBenchmark } from './support/cleanups.js';
import { freeSubnetPool } from './support/engine.js';
import { makeFolder } from './support/folder.js';
import { OwnEngine } from './support/own-engine.js';
import { enterOwnNetwork } from './support/own-network.js';
import { PlatformAgents } from './support/platform-agents.js';
import { BenchPlatform } from './support/platform.js';
import { figure } from './support/statistics.js';
import { printTable } from './support/table.js';

/** Milliseconds from the engine's return until all agents are as desired. */
const AIM = 30_000;

/** As many calls to the engine at a time as a worker makes. */
const PARALLEL = 40;

/** Agents that are made at a time, before anything is measured. */
const BURST = 20;

const TIMEOUT_MS = 300_000;

const { values: options } = parseArgs({ options: { agents: { type: 'string', default: '100' } } });
const count = Number(options.agents);

await enterOwnNetwork();
await runBenchmark(async (atEnd) => {
  const folder = await makeFolder(atEnd);
  const engine = new OwnEngine(folder);
  atEnd(() => engine.stop());
  await engine.start();
  const image = await ensureTestImage(engine.docker);
  const pool = await freeSubnetPool(engine.docker);
  const platform = await BenchPlatform.start(path.join(folder, 'platform'), {
    DOCKER_HOST: engine.host,
    AGENT_RUNTIME_IMAGE: image,
    AGENT_SUBNET_POOL: pool,
    AGENT_PORT_RANGE: '22100-22999',
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
  const killedAt = Date.now();
  const returnedAt = await engine.start();
  const ours = (await allBack(database, killedAt)) - returnedAt;
  const running = await engine.docker.listContainers({ filters: { status: ['running'] } });
  await agents.remove(ids);
  await platform.stop();

  const bare = await BareAgents.on(engine.docker, image, [pool]);
  atEnd(() => bare.removeAll());
  for (let made = 0; made < count; made += BURST) {
    const burst = Array.from({ length: Math.min(BURST, count - made) }, () => bare.likeOurs());
    await Promise.all(burst);
  }
  const alone = await bare.startAgain(PARALLEL);
  console.log(`\n${count} small agents, from the engine's return until all answer:\n`);
  printTable(
    ['way', 'running', 'ms', 'ours over it', 'aim'],
    [
      ['the platform', `${running.length} of ${count}`, figure(ours), '', AIM],
      [
        `dockerode, ${PARALLEL} at a time`,
        `${count} of ${count}`,
        figure(alone),
        figure(ours / alone),
        '',
      ],
    ],
  );
});

/** When the last of the agents was put down as running again, in Unix milliseconds. */
async function allBack(database: Database, killedAt: number): Promise<number> {
  const at = await poll(
    async () => {
      const back = await database.asPlatform().transaction((db) =>
        db.WatchdogTransition.findAll({
          where: { toState: 'running', at: { [Op.gt]: new Date(killedAt) } },
        }),
      );
      const first = new Map(back.map((row) => [row.agentId, row.at.getTime()]));
      return first.size < count ? undefined : Math.max(...first.values());
    },
    { timeoutMs: TIMEOUT_MS, everyMs: 500 },
  );
  if (at === undefined) throw new Error('Not all agents came back');
  return at;
}
