import type { Files } from '../../../src/workspace/workspace.js';

export interface Sizes {
  /** Files in a workspace without a repository. */
  readonly listed: number;
  /** Files in a repository that has nothing to commit. */
  readonly tracked: number;
}

/** What is measured in one place. */
export interface BenchWorkspaces {
  readonly listed: Pick<Files, 'read' | 'write' | 'tree'>;
  readonly tracked: Pick<Files, 'gitStatus'>;
  /** Milliseconds that git by itself takes for a status, there. */
  plainStatus(): Promise<number>;
  /** Ends what is warm, where something is. */
  restart?(): Promise<void>;
}

const FILES_A_FOLDER = 100;

/** As a script of Node in CommonJS, so that both places are filled alike. */
export const fillScript = (folder: string, files: number): string => `
const fs = require('fs');
for (let from = 0; from < ${files}; from += ${FILES_A_FOLDER}) {
  const part = ${JSON.stringify(folder)} + '/part-' + from / ${FILES_A_FOLDER};
  fs.mkdirSync(part, { recursive: true });
  for (let at = from; at < Math.min(from + ${FILES_A_FOLDER}, ${files}); at += 1) {
    fs.writeFileSync(part + '/' + (at - from) + '.txt', String(at));
  }
}`;

/** Commits all that is there. */
export const commitScript = (folder: string): string => `
const run = (...args) => require('child_process').execFileSync('git', args, { cwd: ${JSON.stringify(folder)} });
run('init', '-q');
run('add', '-A');
run('-c', 'user.name=bench', '-c', 'user.email=bench@localhost', 'commit', '-q', '-m', 'all of it');`;

/** Prints the milliseconds of one `git status`, once this script's own start takes no time of its container any more. */
export const statusScript = (folder: string): string => `
const { spawn } = require('child_process');
setTimeout(() => {
  const started = performance.now();
  const git = spawn('git', ['status', '--porcelain', '-uall'], { cwd: ${JSON.stringify(folder)} });
  git.stdout.resume();
  git.on('close', () => process.stdout.write(String(performance.now() - started)));
}, 250);`;
