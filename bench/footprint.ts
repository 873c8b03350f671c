// Measures memory and CPU of the idle platform, with and without agents, excluding the agents' own use.
import path from 'node:path';
import { parseArgs } from 'node:util';
import { setTimeout as delay } from 'node:timers/promises';
import { ensureTestImage } from '../test/agent-image/ensure-test-image.js';
import { runBenchmark } from './support/cleanups.js';
import { freeSubnetPool, obtainEngine } from './support/engine.js';
import { makeFolder } from './support/folder.js';
import { PlatformAgents } from './support/platform-agents.js';
import { BenchPlatform } from './support/platform.js';
import type { Usage } from './support/process-tree.js';
import { figure } from './support/statistics.js';
import { printTable } from './support/table.js';

const MEGABYTE = 1_000_000;
const AIM_MEGABYTES = 250;
const AIM_CPU_PERCENT = 0.5;

const { values: options } = parseArgs({
  options: {
    agents: { type: 'string', default: '10' },
    // Equals the interval between two checks of an agent, so that each agent is checked once.
    seconds: { type: 'string', default: '120' },
    settle: { type: 'string', default: '30' },
  },
});

await runBenchmark(async (atEnd) => {
  const folder = await makeFolder(atEnd);
  const engine = await obtainEngine(folder, atEnd);
  const platform = await BenchPlatform.start(path.join(folder, 'data'), {
    DOCKER_HOST: engine.host,
    AGENT_RUNTIME_IMAGE: await ensureTestImage(engine.docker),
    AGENT_SUBNET_POOL: await freeSubnetPool(engine.docker),
    AGENT_EGRESS: 'open',
    AGENT_PORT_RANGE: '22100-22999',
    AGENT_HOST_CAPACITY: '900',
  });
  const agents = new PlatformAgents(platform, engine);
  atEnd(() => agents.removeRest());
  atEnd(() => platform.stop());

  const count = Number(options.agents);
  const without = await idle(platform);
  for (let index = 0; index < count; index++) await agents.provision(`idle ${index}`);
  const withAgents = await idle(platform);

  const parts = Object.keys(without);
  const rows = parts.map((part) => rowOf(part, without[part], withAgents[part]));
  const [all, allWith] = [sumOf(Object.values(without)), sumOf(Object.values(withAgents))];
  console.log(`\nIdle over ${options.seconds} s, 100 % is one core:\n`);
  printTable(
    ['part', 'MB, 0 agents', `MB, ${count} agents`, 'CPU %, 0 agents', `CPU %, ${count} agents`],
    [
      ...rows,
      rowOf('all', all, allWith),
      [
        `${count} agents over 0`,
        '',
        figure(allWith.memory / all.memory),
        '',
        figure(allWith.cpu / all.cpu),
      ],
      ['aim, at most', AIM_MEGABYTES, AIM_MEGABYTES, AIM_CPU_PERCENT, AIM_CPU_PERCENT],
    ],
  );
});

/** Returns the use after a while without work: memory at the end, and CPU as a share of one core. */
async function idle(platform: BenchPlatform): Promise<Record<string, Usage>> {
  await delay(Number(options.settle) * 1_000);
  const before = await platform.usage();
  const started = performance.now();
  await delay(Number(options.seconds) * 1_000);
  const after = await platform.usage();
  const seconds = (performance.now() - started) / 1_000;
  return Object.fromEntries(
    Object.entries(after).map(([part, { memory, cpu }]) => [
      part,
      { memory, cpu: (cpu - (before[part]?.cpu ?? 0)) / seconds },
    ]),
  );
}

function sumOf(usages: readonly Usage[]): Usage {
  return {
    memory: usages.reduce((sum, { memory }) => sum + memory, 0),
    cpu: usages.reduce((sum, { cpu }) => sum + cpu, 0),
  };
}

function rowOf(part: string, without: Usage | undefined, withAgents: Usage | undefined) {
  const memory = (usage?: Usage) => figure((usage?.memory ?? Number.NaN) / MEGABYTE);
  const cpu = (usage?: Usage) => figure((usage?.cpu ?? Number.NaN) * 100);
  return [part, memory(without), memory(withAgents), cpu(without), cpu(withAgents)];
}
