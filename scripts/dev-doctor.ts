// Examines the platform that `npm start` runs here, or this machine before a start: npm run doctor
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { doctorRun } from '../dev/doctor-environment.js';
import { describeFailure } from '../dev/failure.js';
import { builtProgram, projectRoot } from '../dev/root.js';

try {
  const dataDir = path.resolve(projectRoot, process.env.DATA_DIR?.trim() || '.data');
  const { env, options } = await doctorRun(dataDir, process.env);
  const program = ['--enable-source-maps', builtProgram('scripts', 'doctor.js'), ...options];
  const given = process.argv.slice(2);
  process.exitCode =
    spawnSync(process.execPath, [...program, ...given], { env, stdio: 'inherit' }).status ?? 1;
} catch (error) {
  console.error(describeFailure(error));
  process.exitCode = 1;
}
