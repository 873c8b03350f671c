import type Docker from 'dockerode';
import { STATE_DIRECTORY, containerName } from '../../src/docker/containers/container-spec.js';
import { runInContainer } from './run-in-container.js';

/** Writes a file into the memory of a running agent. */
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

/** Returns the content of a file in the memory of an agent; `nothing` if it does not exist. */
export function readMemory(docker: Docker, agentId: string, file: string): Promise<string> {
  return runInContainer(
    docker,
    containerName(agentId),
    `const fs = require('fs'), file = '${STATE_DIRECTORY}/${file}';
     process.stdout.write(fs.existsSync(file) ? fs.readFileSync(file) : 'nothing')`,
  );
}
