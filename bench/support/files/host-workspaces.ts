import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { Workspace } from '../../../src/workspace/workspace.js';
import {
  commitScript,
  fillScript,
  statusScript,
  type BenchWorkspaces,
  type Sizes,
} from './bench-workspaces.js';

const run = promisify(execFile);
const runScript = async (script: string) => (await run(process.execPath, ['-e', script])).stdout;

/** Creates workspaces in a folder of the host, which this process opens itself. */
export async function hostWorkspaces(folder: string, sizes: Sizes): Promise<BenchWorkspaces> {
  const at = (name: string) => path.join(folder, name);
  const opened = (name: string) => new Workspace({ path: at(name), views: at('views') });
  await runScript(fillScript(at('listed'), sizes.listed));
  await runScript(fillScript(at('tracked'), sizes.tracked));
  await runScript(commitScript(at('tracked')));
  return {
    listed: opened('listed'),
    tracked: opened('tracked'),
    plainStatus: async () => Number(await runScript(statusScript(at('tracked')))),
  };
}
