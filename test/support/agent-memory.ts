import type Docker from 'dockerode';
import { STATE_DIRECTORY, containerName } from '../../src/docker/containers/container-spec.js';
import { runInContainer } from './run-in-container.js';

/** Puts a file into the memory of an agent that runs. */
export async function writeMemory(
  docker: Docker,
  agentId: string,
  file: string,
  text: string,
): Promise<void> {
  await runInContainer(
    docker,
    containerName(agentId),
    `const fs = require('fs'), file = '${STATE_DIRECTORY}/${file}';
     fs.mkdirSync(require('path').dirname(file), { recursive: true });
     fs.writeFileSync(file, '${text}')`,
  );
}

/** What a file of its memory says; `nothing` where it is not there. */
export function readMemory(docker: Docker, agentId: string, file: string): Promise<string> {
  return runInContainer(
    docker,
    containerName(agentId),
    `const fs = require('fs'), file = '${STATE_DIRECTORY}/${file}';
     process.stdout.write(fs.existsSync(file) ? fs.readFileSync(file) : 'nothing')`,
  );
}
