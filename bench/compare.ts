// Compares the present state with an older commit: `npm run bench:compare -- <commit> [benchmark …]` runs
// the benchmarks of both in turns and prints the ratio of each figure.
import path from 'node:path';
import { parseArgs } from 'node:util';
import { StartFailure } from '../dev/failure.js';
import { runBenchmark } from './support/cleanups.js';
import { compare, TOLERANCE, type Compared, type Round } from './support/compare/comparison.js';
import { figuresIn } from './support/compare/figures.js';
import { presentState, stateAt, type State } from './support/compare/states.js';
import { Steps } from './support/compare/steps.js';
import { makeFolder } from './support/folder.js';
import { figure } from './support/statistics.js';
import { printTable } from './support/table.js';

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    /** Runs of each benchmark in each state. */
    rounds: { type: 'string', default: '3' },
    /** Measured seconds and warm-up of each load in a run. */
    seconds: { type: 'string', default: '4' },
    warmup: { type: 'string', default: '8' },
  },
});
const [commit, ...named] = positionals;

const LOADS = ['--rounds=2', `--seconds=${options.seconds}`, `--warmup=${options.warmup}`];
/** Arguments of the benchmarks that are compared by default; others run with their own defaults. */
const ARGUMENTS: Readonly<Record<string, readonly string[]>> = {
  ai: [...LOADS, '--against='],
  http: LOADS,
  debit: LOADS,
  auth: [...LOADS, '--answers=20', '--signins=10'],
};

await runBenchmark(async (atEnd) => {
  if (commit === undefined) {
    throw new StartFailure(
      'The commit is missing: npm run bench:compare -- <commit> [benchmark …]',
    );
  }
  const folder = await makeFolder(atEnd);
  const steps = new Steps();
  const now = await presentState();
  const before = await stateAt(commit, folder, steps, atEnd);
  const measure = async ({ name, folder: root }: State, bench: string) => {
    console.log(`Running ${bench} of ${name} ...`);
    const program = path.join('dist-dev', 'bench', `${bench}.js`);
    return figuresIn(await steps.run(root, [program, ...(ARGUMENTS[bench] ?? [])]));
  };
  for (const bench of named.length > 0 ? named : Object.keys(ARGUMENTS)) {
    const rounds: Round[] = [];
    for (let round = 0; round < Number(options.rounds); round++) {
      // The first state of a round alternates, so that neither always runs on a warmer machine.
      if (round % 2 === 0) {
        const older = await measure(before, bench);
        rounds.push({ before: older, now: await measure(now, bench) });
      } else {
        const newer = await measure(now, bench);
        rounds.push({ before: await measure(before, bench), now: newer });
      }
    }
    print(bench, compare(rounds), before, now);
  }
});

function print(bench: string, compared: readonly Compared[], before: State, now: State): void {
  console.log(
    `\n${bench}: medians of ${options.rounds} runs in turns, ${now.name} over ${before.name}\n`,
  );
  for (const table of new Set(compared.map((each) => each.table))) {
    const figures = compared.filter((each) => each.table === table);
    console.log(`${figures[0]?.caption}\n`);
    printTable(
      ['figure', before.name, now.name, 'ratio', 'ratio by round', 'verdict'],
      figures.map((each) => [
        each.name,
        figure(each.before),
        figure(each.now),
        figure(each.ratio),
        each.spread.map(figure).join(' to '),
        each.verdict,
      ]),
    );
  }
  const worse = compared.filter(({ verdict }) => verdict === 'worse').length;
  console.log(`${worse} figures of ${bench} are worse by more than ${TOLERANCE * 100} %.`);
}
