// Checks docker-compose.yml: npm run compose:check
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { StartFailure } from '../dev/failure.js';
import { projectRoot } from '../dev/root.js';
import { readSettings } from '../dev/settings.js';
import { runScript } from '../src/run-script.js';
import { findCompose, loadProject } from './compose-loader.js';
import {
  ALL_PROFILES,
  caddyFaults,
  composeFaults,
  composeProject,
  EXAMPLE_VARIABLES,
  variableFaults,
} from './compose-rules.js';

await runScript(main, StartFailure);

async function main(): Promise<void> {
  const { process: settings } = readSettings(process.env);
  const compose = await findCompose(settings.cacheDir);
  const project = composeProject.parse(
    await loadProject(compose, { ...EXAMPLE_VARIABLES, ...ALL_PROFILES }),
  );
  const read = (file: string) => readFile(path.join(projectRoot, file), 'utf8');
  const [file, tracked, example, caddyfile] = await Promise.all(
    ['docker-compose.yml', '.env', '.env.example', 'deploy/Caddyfile'].map(read),
  );
  const faults = [
    ...composeFaults(project),
    ...caddyFaults(caddyfile ?? '', project),
    ...variableFaults(file ?? '', tracked ?? '', example ?? ''),
  ];
  if (faults.length > 0) {
    throw new StartFailure(`docker-compose.yml breaks its rules:\n  - ${faults.join('\n  - ')}`);
  }
  console.log(
    `docker-compose.yml: ${Object.keys(project.services).length} services follow the rules`,
  );
}
