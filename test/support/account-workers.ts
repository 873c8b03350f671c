import type { Client } from '@temporalio/client';
import type { NativeConnection } from '@temporalio/worker';
import type { Logger } from 'pino';
import { DockerHost } from '../../src/docker/containers/docker-host.js';
import type { Database } from '../../src/platform/database/database.js';
import { createAccountDeletions, createWorkerServices } from '../../src/services.js';
import type { Settings } from '../../src/settings.js';
import { accountDeletionRuns, mailRuns, securityEventRuns } from '../../temporal/row-runs.js';
import { Supervisors } from '../../temporal/supervisors.js';
import { DatabaseGate } from '../../worker/database-gate.js';
import { accountDeletions, mails, securityEvents } from '../../worker/handed-rows.js';
import { handOverPeriodically } from '../../worker/hand-over.js';
import { createPlatformWorkers } from '../../worker/platform-worker.js';
import { runWorkers } from '../../worker/run-together.js';
import { workflowCode } from './temporal.js';

interface Parts {
  readonly settings: Settings;
  readonly database: Database;
  readonly temporal: {
    readonly client: Client;
    readonly connection: NativeConnection;
    readonly namespace: string;
  };
  readonly log: Logger;
}

/**
 * Starts the parts of a worker that concern accounts, without Docker.
 *
 * @returns a function that stops these parts.
 */
export async function startAccountWorkers({
  settings,
  database,
  temporal: { client, connection, namespace },
  log,
}: Parts): Promise<() => Promise<void>> {
  const docker = new DockerHost({ dockerHost: 'unix:///nowhere/docker.sock' });
  const supervisors = new Supervisors(client, undefined);
  const foundation = { settings, database, docker, log };
  const workers = {
    ...foundation,
    connection,
    namespace,
    services: createWorkerServices(foundation),
    accountDeletions: createAccountDeletions({ ...foundation, supervisors }),
    supervisors,
    code: await workflowCode(),
    gate: new DatabaseGate(),
  };
  const ending = new AbortController();
  const handed = [
    mails(database, mailRuns(client)),
    securityEvents(securityEventRuns(client)),
    accountDeletions(accountDeletionRuns(client)),
  ];
  const running = Promise.all([
    runWorkers(() => createPlatformWorkers(workers), ending.signal),
    ...handed.map((each) => handOverPeriodically({ database, log }, each, ending.signal)),
  ]);
  return async () => {
    ending.abort();
    await running;
  };
}
