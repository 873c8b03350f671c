import {
  ContainerError,
  DockerUnavailableError,
} from '../../src/docker/containers/container-errors.js';
import type { DockerHost } from '../../src/docker/containers/docker-host.js';
import type { Listening } from '../http/server.js';
import { createContainersListener, type ContainersDependencies } from './containers.js';

/** Milliseconds between attempts to listen on Docker's bridge while Docker is unavailable. */
const RETRY_MS = 5_000;

interface AgentsServed extends Pick<Listening, 'close'> {
  /** Undefined until Docker's bridge is available. */
  readonly url: string | undefined;
}

/**
 * Serves agents on Docker's bridge. The bridge needs a running Docker: until then, retries in the background.
 * @throws ListenError.
 */
export async function serveAgents(
  dependencies: ContainersDependencies & { readonly docker: DockerHost },
): Promise<AgentsServed> {
  const { settings, docker, log } = dependencies;
  let listening: Listening | undefined;
  let timer: NodeJS.Timeout | undefined;
  let attempting = Promise.resolve();
  let closed = false;

  const attempt = async () => {
    const host = settings.agents.aiHost ?? (await bridgeAddress(docker));
    listening = await createContainersListener(dependencies).listen(
      host,
      settings.agents.aiPort,
      'AGENT_AI_PORT',
    );
    log.info({ url: listening.url }, 'serving agents');
  };
  const attemptLater = () => {
    if (closed) return;
    timer = setTimeout(() => {
      attempting = attempt().catch((error: unknown) => {
        if (!(error instanceof ContainerError)) log.error({ err: error }, 'serving agents failed');
        attemptLater();
      });
    }, RETRY_MS);
  };
  try {
    await attempt();
  } catch (error) {
    if (!(error instanceof ContainerError)) throw error;
    log.warn({ reason: error.message }, 'agents are not served yet: retrying');
    attemptLater();
  }
  return {
    get url() {
      return listening?.url;
    },
    async close() {
      closed = true;
      clearTimeout(timer);
      await attempting;
      await listening?.close();
    },
  };
}

/** Checks availability first, because a Docker daemon that hangs would block the request. */
async function bridgeAddress(docker: DockerHost): Promise<string> {
  if (await docker.available()) return docker.bridgeAddress();
  throw new DockerUnavailableError('The container engine does not answer');
}
