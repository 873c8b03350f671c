// Runs one of our programs beside the platform that `npm start` runs here: node scripts/beside.mjs <name>
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { describeFailure } from '../dev/failure.js';
import { builtProgram, projectRoot } from '../dev/root.js';
import { runningEnvironment } from '../dev/running-environment.js';

const [name = '', ...args] = process.argv.slice(2);

try {
  const dataDir = path.resolve(projectRoot, process.env.DATA_DIR?.trim() || '.data');
  const env = runningEnvironment(dataDir, process.env);
  const program = ['--enable-source-maps', builtProgram('scripts', `${name}.js`), ...args];
  process.exitCode = spawnSync(process.execPath, program, { env, stdio: 'inherit' }).status ?? 1;
} catch (error) {
  console.error(describeFailure(error));
  process.exitCode = 1;
}
