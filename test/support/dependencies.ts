import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { pino, type Logger } from 'pino';
import type { BackendDependencies } from '../../api/backend/dependencies.js';
import { BackendClient } from '../../api/web/backend-client.js';
import type { WebDependencies } from '../../api/web/dependencies.js';
import { DockerHost } from '../../src/docker/containers/docker-host.js';
import { createApiServices } from '../../src/services.js';
import { loadSettings } from '../../src/settings.js';
import { Supervisors } from '../../temporal/supervisors.js';
import { TemporalTraceHistories } from '../../temporal/trace-histories.js';
import { testEnvironment } from './platform-environment.js';
import type { TestDatabase } from './postgres.js';

/** Creates the dependencies of all listeners with only a database available; `engine`: a Docker host beside. */
export async function databaseAlone(
  { db: database, url }: Pick<TestDatabase, 'db' | 'url'>,
  log: Logger = pino({ level: 'silent' }),
  env: Readonly<Record<string, string | undefined>> = {},
  { engine = true } = {},
) {
  const settings = loadSettings(testEnvironment({ DATABASE_URL: url }, env));
  const dataDir = await mkdtemp(path.join(tmpdir(), 'aps-alone-'));
  const docker = new DockerHost({ dockerHost: 'unix:///nowhere/docker.sock' });
  const temporal = new Client({ connection: Connection.lazy({ address: '127.0.0.1:1' }) });
  const services = createApiServices({
    settings: { ...settings, process: { ...settings.process, dataDir } },
    database,
    docker: engine ? docker : undefined,
    supervisors: new Supervisors(temporal, 'http://temporal-ui.test'),
    log,
  });
  const backend = new BackendClient('http://127.0.0.1:1', 'nobody');
  const dependencies: WebDependencies & BackendDependencies & { readonly docker: DockerHost } = {
    ...services,
    settings,
    database,
    docker,
    log,
    traceHistories: new TemporalTraceHistories(temporal, undefined),
    backend,
  };
  return {
    dependencies,
    async close() {
      await services.ai.close();
      await rm(dataDir, { recursive: true });
    },
  };
}
