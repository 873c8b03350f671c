import { spawn } from 'node:child_process';
import path from 'node:path';
import { projectRoot } from '../../dev/root.js';

/** Runs a Node program in the project folder. @returns its output. @throws if it fails. */
export function runProgram(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, {
      cwd: projectRoot,
      env: { ...process.env, ...env },
    });
    let output = '';
    const collect = (chunk: Buffer) => (output += chunk.toString());
    child.stdout.on('data', collect);
    child.stderr.on('data', collect);
    child.once('error', reject);
    child.once('close', (code) => {
      if (code === 0) resolve(output);
      else reject(new Error(`${args.join(' ')} exited with ${code}:\n${output}`));
    });
  });
}

/** Builds the programs that tests run, unless they are built already. */
export const buildPrograms = () => runProgram([path.join('scripts', 'build.mjs'), '--dev']);
