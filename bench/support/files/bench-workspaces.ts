import type { Files } from '../../../src/workspace/workspace.js';

export interface Sizes {
  /** Files in a workspace without a repository. */
  readonly listed: number;
  /** Files in a repository that has nothing to commit. */
  readonly tracked: number;
}

/** The workspaces to measure in one place. */
export interface BenchWorkspaces {
  readonly listed: Pick<Files, 'read' | 'write' | 'tree'>;
  readonly tracked: Pick<Files, 'gitStatus'>;
  /** Returns the milliseconds of a plain `git status` there. */
  plainStatus(): Promise<number>;
  /** Ends warm processes, if any. */
  restart?(): Promise<void>;
}

const FILES_A_FOLDER = 100;

/** Returns a CommonJS script for Node that fills a folder, so that both places have the same files. */
export const fillScript = (folder: string, files: number): string => `
const fs = require('fs');
for (let from = 0; from < ${files}; from += ${FILES_A_FOLDER}) {
  const part = ${JSON.stringify(folder)} + '/part-' + from / ${FILES_A_FOLDER};
  fs.mkdirSync(part, { recursive: true });
  for (let at = from; at < Math.min(from + ${FILES_A_FOLDER}, ${files}); at += 1) {
    fs.writeFileSync(part + '/' + (at - from) + '.txt', String(at));
  }
}`;

/** Returns a script that commits all files. */
export const commitScript = (folder: string): string => `
const run = (...args) => require('child_process').execFileSync('git', args, { cwd: ${JSON.stringify(folder)} });
run('init', '-q');
run('add', '-A');
run('-c', 'user.name=bench', '-c', 'user.email=bench@localhost', 'commit', '-q', '-m', 'all of it');`;

/**
 * Returns a script that prints the milliseconds of one `git status`, after its own start no longer uses
 * CPU.
 */
export const statusScript = (folder: string): string => `
const { spawn } = require('child_process');
setTimeout(() => {
  const started = performance.now();
  const git = spawn('git', ['status', '--porcelain', '-uall'], { cwd: ${JSON.stringify(folder)} });
  git.stdout.resume();
  git.on('close', () => process.stdout.write(String(performance.now() - started)));
}, 250);`;
