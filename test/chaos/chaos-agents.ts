// Kills parts of the platform and agents in the middle of operations, and checks the outcome.
import { parseArgs } from 'node:util';
import { HASTE, openAgentsSite, PORTS } from './agents-site.js';
import { isPart, type Kill, KILLS, planRound, type RoundPlan } from './plan.js';
import { remainsOf } from './remains.js';
import { type RoundResult, runRound } from './round.js';
import { runBenchmark } from '../../bench/support/cleanups.js';
import { enterOwnNetwork } from '../../bench/support/own-network.js';

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
  const { site } = await openAgentsSite(atEnd);
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

function print({ plan, killed, reported, problems, seconds }: RoundResult): void {
  const { agents, kill, killAfterMs, operation, seed } = plan;
  const what = `${kill} at ${killAfterMs} ms of ${operation} of ${agents.length}`;
  const how = problems.length > 0 ? 'WRONG' : killed ? 'well' : 'well, nothing to kill';
  console.log(`seed ${seed}: ${what}: ${how} (${seconds} s)`);
  for (const each of reported) console.log(`  told: ${each}`);
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
