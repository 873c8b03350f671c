import { Client, Connection } from '@temporalio/client';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import type { Logger } from 'pino';
import { loadConfig, type Config } from '../src/config.js';
import { connectContainers } from '../src/containers/engine-of.js';
import type { DockerContainers } from '../src/containers/docker-containers.js';
import { ContainerError } from '../src/containers/container-errors.js';
import { Database } from '../src/database/database.js';
import { createLogger } from '../src/log.js';
import { tellProblem, tellReady, toldToEnd } from '../src/process-life.js';
import { SecretBox } from '../src/secrets/secret-box.js';
import { createBackend } from './backend/backend.js';
import { createContainersListener } from './containers/containers.js';
import type { Listening } from './http/server.js';
import { Supervisors } from './temporal/supervisors.js';
import { BackendClient } from './web/backend-client.js';
import { createWeb } from './web/web.js';

/** Between two attempts to listen where containers can reach us, while the engine is out. */
const RETRY_MS = 5_000;

try {
  await main();
} catch (error) {
  tellProblem(error);
  process.exitCode = 1;
}
process.disconnect?.();

async function main(): Promise<void> {
  const ended = toldToEnd();
  const config = loadConfig();
  const log = createLogger('api', config);
  const { connectionOptions, namespace = 'default' } = loadClientConnectConfig();
  // Lazy: an API without its workflow engine still answers what it can.
  const connection = Connection.lazy(connectionOptions);
  const database = new Database(config.databaseUrl, { maxConnections: 20 });
  const secrets = new SecretBox(config.encryptionKey);
  const containers = connectContainers(config);
  const supervisors = new Supervisors(new Client({ connection, namespace }), config.temporalUiUrl);
  const open: Listening[] = [];
  const ending = new AbortController();
  try {
    const backend = createBackend({ config, database, secrets, supervisors, containers, log });
    open.push(await backend.listen(config.host, config.backendPort));
    const client = new BackendClient(config.backendUrl, config.internalApiKey);
    const web = createWeb({ config, database, secrets, backend: client }, log);
    open.push(await web.listen(config.host, config.webPort));
    const serveAgents = keepTryingToServeAgents(
      { config, containers, database, log },
      ending.signal,
    );
    tellReady();
    await ended;
    ending.abort();
    await serveAgents;
  } finally {
    await Promise.all(open.map((listening) => listening.close()));
    await connection.close();
    await database.close();
  }
}

/** The agents' listener is on the engine's bridge, which is there only once the engine is. */
async function keepTryingToServeAgents(
  dependencies: {
    readonly config: Config;
    readonly containers: DockerContainers;
    readonly database: Database;
    readonly log: Logger;
  },
  ending: AbortSignal,
): Promise<void> {
  const { config, containers, log } = dependencies;
  const listener = createContainersListener(dependencies);
  let listening: Listening | undefined;
  for (let told = false; !listening && !ending.aborted;) {
    try {
      const host = config.agentAiHost ?? (await containers.hostAddress());
      listening = await listener.listen(host, config.agentAiPort);
      log.info({ url: listening.url }, 'agents are served');
    } catch (error) {
      if (!(error instanceof ContainerError)) throw error;
      if (!told) log.warn({ reason: error.message }, 'agents are not served yet');
      told = true;
      await pause(RETRY_MS, ending);
    }
  }
  await aborted(ending);
  await listening?.close();
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true });
  });
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) =>
    signal.addEventListener('abort', () => resolve(), { once: true }),
  );
}
