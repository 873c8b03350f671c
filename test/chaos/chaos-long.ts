// Cuts off the platform's services for the length of real outages while clients keep sending requests.
import { parseArgs } from 'node:util';
import { runBenchmark } from '../../bench/support/cleanups.js';
import { enterOwnNetwork } from '../../bench/support/own-network.js';
import { FAULTS, planLongRound } from './long-plan.js';
import { runLongRound, type LongResult } from './long-round.js';
import { AGENT_PORTS, HASTE, makeLongSite } from './long-site.js';
import { remainsOf } from './remains.js';

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '200' },
    /** The first round's seed; each next round adds one. */
    seed: { type: 'string', default: String(Math.floor(Math.random() * 1_000_000)) },
    /** Seconds of the shortest and of the longest outage. */
    shortest: { type: 'string', default: '10' },
    longest: { type: 'string', default: '900' },
    /** Seconds that a slow image needs to start. */
    slow: { type: 'string', default: '15' },
  },
});
const { longest, shortest, slow } = options;
const firstSeed = Number(options.seed);
const lasts = { shortestMs: Number(shortest) * 1_000, longestMs: Number(longest) * 1_000 };
const plans = Array.from({ length: Number(options.rounds) }, (_, n) =>
  planLongRound(firstSeed + n, lasts),
);

await enterOwnNetwork();
await runBenchmark(async (atEnd) => {
  const site = await makeLongSite(Number(slow), atEnd);
  const settings = Object.entries(HASTE).map(([name, value]) => `${name}=${value}`);
  console.log(
    `${plans.length} rounds from seed ${firstSeed}, of ${shortest} to ${longest} s, with ${settings.join(' ')}`,
  );
  const results: LongResult[] = [];
  for (const [index, plan] of plans.entries()) {
    const result = await runLongRound(site, plan);
    results.push(result);
    print(index + 1, result);
  }
  conclude(results, await remainsOf(site, AGENT_PORTS));
});

function print(
  round: number,
  { asked, plan, reports: reported, problems, seconds }: LongResult,
): void {
  const { agents, deed, fault, host, lastsMs, mode, seed, slow: isSlow } = plan;
  const what = `${fault} (${mode}, host ${host}) for ${Math.round(lastsMs / 1_000)} s, ${deed}`;
  const wanted = agents.map(({ manner, operation }) => `${operation} ${manner}`).join(', ');
  const how = problems.length > 0 ? 'WRONG' : 'well';
  const images = isSlow ? ', slow images' : '';
  console.log(`round ${round}, seed ${seed}: ${what}${images}: ${how} (${asked}; ${seconds} s)`);
  if (problems.length > 0) console.log(`  asked: ${wanted}`);
  for (const each of reported) console.log(`  told: ${each}`);
  for (const problem of problems) console.log(`  ${problem}`);
}

/**
 * Prints the summary.
 * @throws Error if there is a problem.
 */
function conclude(results: readonly LongResult[], remains: readonly string[]): void {
  for (const each of remains) console.log(each);
  const wrong = results.filter(({ problems }) => problems.length > 0);
  const faults = FAULTS.map((fault) => {
    const count = results.filter(({ plan }) => plan.fault === fault).length;
    return `${fault} ${count}`;
  });
  console.log(
    `${results.length} rounds; ${faults.join(', ')}; wrong ${wrong.length}, left over ${remains.length}`,
  );
  if (wrong.length + remains.length === 0) return;
  const seeds = wrong.map(({ plan }) => plan.seed).join(' ');
  const again = `--rounds=1 --shortest=${shortest} --longest=${longest} --slow=${slow} --seed=`;
  throw new Error(`Problems found; repeat a seed with ${again}: ${seeds}`);
}
