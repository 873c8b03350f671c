// How long the file explorer takes on the host's own folder, beside plain `git status`.
import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { Workspace } from '../src/workspace/workspace.js';
import { runBenchmark } from './support/cleanups.js';
import { makeFolder } from './support/folder.js';
import { figure, median, quantile } from './support/statistics.js';
import { printTable } from './support/table.js';

/** Milliseconds of a read, and how much longer than git itself a status may take. */
const READ_AIM = 2;
const STATUS_AIM = 1.3;

const BYTES = 10_000;
const FILES_A_FOLDER = 100;

const { values: options } = parseArgs({
  options: {
    runs: { type: 'string', default: '200' },
    statuses: { type: 'string', default: '30' },
    listed: { type: 'string', default: '10000' },
    tracked: { type: 'string', default: '5000' },
  },
});

const git = promisify(execFile);

await runBenchmark(async (atEnd) => {
  const folder = await makeFolder(atEnd);
  const at = (name: string) => path.join(folder, name);
  const opened = (name: string) => new Workspace({ path: at(name), views: at('views') });
  const text = 'x'.repeat(BYTES);

  await fill(at('listed'), Number(options.listed));
  const listed = opened('listed');
  await listed.write('file.txt', text);
  const runs = Number(options.runs);
  const reads = await times(runs, () => listed.read('file.txt'));
  const writes = await times(runs, () => listed.write('file.txt', text));
  const trees = await times(Number(options.statuses), () => listed.tree(4));

  await fill(at('tracked'), Number(options.tracked));
  const inTracked = (...args: string[]) => git('git', args, { cwd: at('tracked') });
  await inTracked('init', '-q');
  await inTracked('add', '-A');
  const identity = ['-c', 'user.name=bench', '-c', 'user.email=bench@localhost'];
  await inTracked(...identity, 'commit', '-q', '-m', 'all of it');
  const tracked = opened('tracked');
  await tracked.gitStatus();
  const ours: number[] = [];
  const plain: number[] = [];
  // In turns, so that what else the machine does is in the way of both.
  for (let each = 0; each < Number(options.statuses); each += 1) {
    ours.push(...(await times(1, () => tracked.gitStatus())));
    plain.push(...(await times(1, () => inTracked('status', '--porcelain', '-uall'))));
  }

  console.log('On the host, one at a time, ms:\n');
  const row = (name: string, all: readonly number[], aim: number | '') => [
    ...[name, figure(median(all)), figure(quantile(all, 0.99)), aim],
  ];
  printTable(
    ['what', 'p50', 'p99', 'aim of p50'],
    [
      row('read, 10 kB', reads, READ_AIM),
      row('write, 10 kB', writes, ''),
      row(`tree, ${options.listed} files`, trees, ''),
      row(`status, ${options.tracked} files`, ours, ''),
      row('  git status', plain, ''),
    ],
  );
  printTable(
    ['status', 'ratio', 'aim'],
    [['status to git status', figure(median(ours) / median(plain)), STATUS_AIM]],
  );
});

async function fill(folder: string, files: number): Promise<void> {
  for (let from = 0; from < files; from += FILES_A_FOLDER) {
    const part = path.join(folder, `part-${from / FILES_A_FOLDER}`);
    await mkdir(part, { recursive: true });
    const numbers = Array.from({ length: Math.min(FILES_A_FOLDER, files - from) }, (_, at) => at);
    await Promise.all(numbers.map((at) => writeFile(path.join(part, `${at}.txt`), `${from + at}`)));
  }
}

async function times(runs: number, work: () => Promise<unknown>): Promise<number[]> {
  const taken: number[] = [];
  for (let run = 0; run < runs; run += 1) {
    const started = performance.now();
    await work();
    taken.push(performance.now() - started);
  }
  return taken;
}
