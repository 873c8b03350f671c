import {
  ContainerError,
  DockerUnavailableError,
} from '../../src/docker/containers/container-errors.js';
import type { DockerHost } from '../../src/docker/containers/docker-host.js';
import { ListenError, type Listening } from '../http/server.js';
import { createContainersListener, type ContainersDependencies } from './containers.js';

/** Between two attempts to listen where containers can reach us, while Docker is out. */
const RETRY_MS = 5_000;

/** The listener for agents cannot be where it was configured. */
export class AgentsNotServedError extends Error {
  constructor(cause: ListenError) {
    super(`${cause.message}: set AGENT_AI_PORT to a free port, for the agents' AI calls`, {
      cause,
    });
    this.name = 'AgentsNotServedError';
  }
}

/**
 * Serves agents on Docker's bridge. That is there only once Docker is: without one this
 * goes on trying in the background.
 *
 * @throws AgentsNotServedError when the address is taken.
 */
export async function serveAgents(
  dependencies: ContainersDependencies & { readonly docker: DockerHost },
): Promise<Pick<Listening, 'close'>> {
  const { settings, docker, log } = dependencies;
  let listening: Listening | undefined;
  let timer: NodeJS.Timeout | undefined;
  let attempting = Promise.resolve();
  let closed = false;

  const attempt = async () => {
    const host = settings.agents.aiHost ?? (await bridgeAddress(docker));
    listening = await createContainersListener(dependencies).listen(host, settings.agents.aiPort);
    log.info({ url: listening.url }, 'agents are served');
  };
  const attemptLater = () => {
    if (closed) return;
    timer = setTimeout(() => {
      attempting = attempt().catch((error: unknown) => {
        if (!(error instanceof ContainerError)) log.error({ err: error }, 'agents are not served');
        attemptLater();
      });
    }, RETRY_MS);
  };
  try {
    await attempt();
  } catch (error) {
    if (error instanceof ListenError) throw new AgentsNotServedError(error);
    if (!(error instanceof ContainerError)) throw error;
    log.warn({ reason: error.message }, 'agents are not served yet');
    attemptLater();
  }
  return {
    async close() {
      closed = true;
      clearTimeout(timer);
      await attempting;
      await listening?.close();
    },
  };
}

/** Without a wait for a Docker daemon that does not answer at all. */
async function bridgeAddress(docker: DockerHost): Promise<string> {
  if (await docker.available()) return docker.bridgeAddress();
  throw new DockerUnavailableError('The container engine does not answer');
}
