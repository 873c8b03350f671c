// Measures the time from `POST /api/agents` to running, over a bare create, start and wait with
// dockerode, and the installation of a skill over another change of the configuration.
import path from 'node:path';
import { parseArgs } from 'node:util';
import { ensureAgentImage } from '../dev/agent-image/build-openclaw.js';
import { readSettings } from '../dev/settings.js';
import { ensureTestImage } from '../test/agent-image/ensure-test-image.js';
import { BareAgents, type BareRun } from './support/bare-agents.js';
import { runBenchmark } from './support/cleanups.js';
import { freeSubnetPool, obtainEngine, type BenchEngine } from './support/engine.js';
import { makeFolder } from './support/folder.js';
import { PlatformAgents, type Provisioned } from './support/platform-agents.js';
import { BenchPlatform } from './support/platform.js';
import { figure, median } from './support/statistics.js';
import { printTable } from './support/table.js';
import { medianSteps, Timelines, type Step } from './support/timeline.js';

/** Maximum ratios to the bare time, by image, and of many small agents that start concurrently. */
const AIMS = new Map([
  ['small', 1.2],
  ['openclaw', 1.03],
]);
const AIM_AT_ONCE = 1.3;
const AIM_OF_INSTALL = 1.1;

const { values: options } = parseArgs({
  options: {
    image: { type: 'string', default: 'small,openclaw' },
    runs: { type: 'string', default: '15' },
    burst: { type: 'string', default: '20' },
    bursts: { type: 'string', default: '3' },
  },
});

await runBenchmark(async (atEnd) => {
  const folder = await makeFolder(atEnd);
  const engine = await obtainEngine(folder, atEnd);
  for (const image of options.image.split(',')) {
    const tag = image === 'small' ? await ensureTestImage(engine.docker) : await openClaw(engine);
    const pool = await freeSubnetPool(engine.docker);
    const platform = await BenchPlatform.start(path.join(folder, image), {
      DOCKER_HOST: engine.host,
      AGENT_RUNTIME_IMAGE: tag,
      AGENT_SUBNET_POOL: pool,
      AGENT_EGRESS: 'open',
      AGENT_PORT_RANGE: '22100-22999',
      AGENT_HOST_CAPACITY: '900',
    });
    const ours = new PlatformAgents(platform, engine);
    const bare = await BareAgents.on(engine.docker, tag, [pool]);
    atEnd(() => bare.removeAll());
    atEnd(() => ours.removeRest());
    atEnd(() => platform.stop());
    await compareSingle(image, ours, bare, platform.temporalAddress);
    await compareChanges(image, ours);
    // A burst of the real image needs more memory than a usual machine has.
    if (image === 'small') await compareBurst(platform, ours, bare);
    await platform.stop();
  }
});

/** Measures one agent after the other, in turns with the bare ways. */
async function compareSingle(
  image: string,
  ours: PlatformAgents,
  bare: BareAgents,
  temporalAddress: string,
): Promise<void> {
  const timelines = await Timelines.connect(temporalAddress);
  const provisioned: (Provisioned & { steps: Step[] })[] = [];
  const likeOurs: BareRun[] = [];
  const barest: BareRun[] = [];
  const runs = Number(options.runs);
  // The first round is a warm-up and does not count.
  for (let run = 0; run <= runs; run++) {
    const agent = await ours.provision(`bench-${image}-${run}`);
    const steps = await timelines.of(agent.id, agent.sentAt);
    await ours.remove([agent.id]);
    const same = await bare.likeOurs();
    await bare.remove(same.id);
    const plain = await bare.onDefaultBridge();
    await bare.remove(plain.id);
    if (run === 0) continue;
    provisioned.push({ ...agent, steps });
    likeOurs.push(same.run);
    barest.push(plain.run);
  }
  await timelines.close();

  const running = median(provisioned.map((agent) => agent.running));
  const sameTotal = median(likeOurs.map(({ total }) => total));
  const plainTotal = median(barest.map(({ total }) => total));
  console.log(`\nOne agent, ${image} image, medians of ${runs} in turns:\n`);
  printTable(
    ['way', 'ms', 'ours over it', 'aim'],
    [
      ['POST to running', figure(running), '', ''],
      [
        'dockerode, the same container',
        figure(sameTotal),
        figure(running / sameTotal),
        AIMS.get(image) ?? '',
      ],
      ['dockerode, default bridge', figure(plainTotal), figure(running / plainTotal), ''],
    ],
  );
  printWhereTimeGoes(provisioned, likeOurs);
}

/** Measures changes of one running agent in turns: of an entry of a skill, an installation and a removal. */
async function compareChanges(image: string, ours: PlatformAgents): Promise<void> {
  const { id } = await ours.provision(`bench-${image}-changes`);
  const configured: number[] = [];
  const installed: number[] = [];
  const removed: number[] = [];
  const runs = Number(options.runs);
  // The first round is a warm-up and does not count.
  for (let run = 0; run <= runs; run++) {
    const entry = { enabled: run % 2 === 0 };
    const took = [
      await ours.operate(id, 'PUT', 'skills/weather', entry),
      await ours.operate(id, 'POST', 'skills/decision-log'),
      await ours.operate(id, 'DELETE', 'skills/decision-log'),
    ] as const;
    if (run === 0) continue;
    configured.push(took[0]);
    installed.push(took[1]);
    removed.push(took[2]);
  }
  await ours.remove([id]);
  const configure = median(configured);
  const install = median(installed);
  const removal = median(removed);
  console.log(`Changes of a running agent, ${image} image, medians of ${runs} in turns:\n`);
  printTable(
    ['change', 'ms', 'over configure', 'aim'],
    [
      ['configure', figure(configure), '', ''],
      ['install a skill', figure(install), figure(install / configure), AIM_OF_INSTALL],
      ['remove a skill', figure(removal), figure(removal / configure), ''],
    ],
  );
}

function printWhereTimeGoes(
  provisioned: readonly (Provisioned & { steps: Step[] })[],
  bare: readonly BareRun[],
): void {
  console.log('Time of each step, in ms from sending the request:\n');
  const answered = median(provisioned.map((agent) => agent.answered));
  printTable(
    ['ours', 'scheduled', 'started', 'ended', 'took'],
    [
      ['POST answered', '', '', figure(answered), figure(answered)],
      ...medianSteps(provisioned.map(({ steps }) => steps)).map(
        ({ name, scheduled, started, ended }) => [
          name,
          ...[scheduled, started, ended, ended - started].map(figure),
        ],
      ),
    ],
  );
  const names = Object.keys(bare[0]?.steps ?? {});
  printTable(
    ['dockerode', 'took'],
    names.map((name) => [name, figure(median(bare.map(({ steps }) => steps[name] ?? 0)))]),
  );
}

/** Measures bursts of agents in turns. */
async function compareBurst(
  platform: BenchPlatform,
  ours: PlatformAgents,
  bare: BareAgents,
): Promise<void> {
  const count = Number(options.burst);
  const oursTook: number[] = [];
  const bareTook: number[] = [];
  const used: Record<string, number[]> = {};
  let fewest = count;
  for (let turn = 0; turn < Number(options.bursts); turn++) {
    const before = await platform.usage();
    const burst = await ours.burst(count);
    const after = await platform.usage();
    for (const [part, { cpu }] of Object.entries(after)) {
      (used[part] ??= []).push(cpu - (before[part]?.cpu ?? 0));
    }
    await ours.remove(burst.ids);
    oursTook.push(burst.took);
    fewest = Math.min(fewest, burst.running);
    const started = performance.now();
    await Promise.all(Array.from({ length: count }, () => bare.likeOurs()));
    bareTook.push(performance.now() - started);
    await bare.removeAll();
  }
  const [took, bareTotal] = [median(oursTook), median(bareTook)];
  console.log(`${count} agents at once, small image, medians of ${oursTook.length} in turns:\n`);
  printTable(
    ['way', 'running', 'ms', 'ours over it', 'aim'],
    [
      ['POST to running', `${fewest} of ${count}`, figure(took), '', ''],
      [
        'dockerode, the same containers',
        `${count} of ${count}`,
        figure(bareTotal),
        figure(took / bareTotal),
        AIM_AT_ONCE,
      ],
    ],
  );
  console.log('CPU time of the platform during the bursts, in seconds of one core:\n');
  printTable(
    ['part', 's'],
    Object.entries(used).map(([part, seconds]) => [part, figure(median(seconds))]),
  );
}

function openClaw({ docker }: BenchEngine): Promise<string> {
  const {
    agents: { runtimeVersion: version },
    process: { cacheDir },
  } = readSettings(process.env);
  return ensureAgentImage({ docker, version, cacheDir, log: (line) => console.log(`  ${line}`) });
}
