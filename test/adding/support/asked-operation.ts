import { randomUUID } from 'node:crypto';
import { Worker } from '@temporalio/worker';
import pino from 'pino';
import * as z from 'zod';
import { createRecordActivities } from '../../../activities/records.js';
import { operationEndpoints } from '../../../api/backend/operations.js';
import { AgentOperations } from '../../../src/agents/lifecycle/agent-operations.js';
import { AgentPorts } from '../../../src/agents/agents/agent-ports.js';
import { OperationStore } from '../../../src/agents/operations/operation-store.js';
import { WatchdogStore } from '../../../src/agents/watchdog/watchdog-store.js';
import { reportHost } from '../../../src/agents/hosts/hosts.js';
import { Supervisors } from '../../../temporal/supervisors.js';
import {
  PLATFORM_TASK_QUEUE,
  containersTaskQueue,
  superviseAgentId,
} from '../../../workflows/ids.js';
import { AGENT_PHASE } from '../../../workflows/search-attributes.js';
import { bearer, INTERNAL_KEY, serve } from '../../api/http/support.js';
import { shippedModels } from '../../support/models.js';
import { newUser, testDatabase } from '../../support/postgres.js';
import { testSecrets } from '../../support/secrets.js';
import { testTemporal, workflowCode } from '../../support/temporal.js';
import { FakeAgent, SETTINGS, fakeActivities } from '../../workflows/support/fake-agent.js';

const HOST = 'lab';

/** The outcome of an operation requested at its endpoint. */
export interface Asked {
  readonly status: number;
  /** The final status in the answer. */
  readonly ended: string;
  /** The phase shown to operators while the container was being stopped. */
  readonly phase: string | undefined;
  readonly containerSteps: readonly string[];
  /** The agent's desired state afterwards. */
  readonly desired: string | undefined;
  /** The operations in the owner's history. */
  readonly history: readonly string[];
}

/**
 * Requests an operation of a running agent: endpoint, PostgreSQL, Temporal and supervisor are real, the
 * container is fake.
 */
export async function askFor(operation: string): Promise<Asked> {
  const [database, temporal] = await Promise.all([testDatabase(), testTemporal()]);
  const { db } = database;
  const { client, connection, namespace } = temporal;
  const secrets = testSecrets();
  const operations = new AgentOperations({
    supervisors: new Supervisors(client, undefined),
    engines: { require: () => Promise.resolve() },
    secrets,
    images: { usual: 'image', versions: new Map() },
    aiProvider: 'openai',
    models: shippedModels(),
    accounts: { adminEmails: [] },
    log: pino({ enabled: false }),
  });
  const backend = await serve(operationEndpoints({ operations }), { database: db, secrets });
  try {
    const userId = await newUser(database);
    const ports = { first: 19_100, last: 19_199 };
    await reportHost(db, { id: HOST, capacity: 1, ports, engineAvailable: true });
    const id = randomUUID();
    const names = { id, userId, name: id, subdomain: id, host: HOST };
    const model = { plan: 'solo', model: 'gpt-4', aiProvider: 'openai' } as const;
    const tenant = db.asUser(userId);
    const row = { ...names, ...model, startedAt: new Date() };
    await tenant.transaction((all) => all.Agent.create(row));

    const supervisor = client.workflow.getHandle(superviseAgentId(id));
    let phase: string | undefined;
    const agent = new FakeAgent({ agentId: id, userId, host: HOST });
    agent.on('stopContainer', async () => {
      phase = (await supervisor.describe()).typedSearchAttributes.get(AGENT_PHASE);
    });
    const { containers } = fakeActivities(
      () => agent,
      () => SETTINGS,
    );
    const common = { connection, namespace };
    const workers = await Promise.all([
      Worker.create({
        ...common,
        ...(await workflowCode()),
        taskQueue: PLATFORM_TASK_QUEUE,
        activities: createRecordActivities({
          operations: new OperationStore(db, secrets),
          ports: new AgentPorts(db),
          settings: SETTINGS,
          states: new WatchdogStore(db),
        }),
      }),
      Worker.create({
        ...common,
        taskQueue: containersTaskQueue(HOST),
        activities: containers,
        maxHeartbeatThrottleInterval: '100 milliseconds',
      }),
    ]);
    const running = Promise.all(workers.map((worker) => worker.run()));
    try {
      const headers = { ...bearer(INTERNAL_KEY), 'x-user-id': userId };
      const call = (method: string, of: string) =>
        backend.call(`/api/agents/${id}/${of}`, { method, headers });
      const answer = await call('POST', `${operation}?wait=60`);
      const { status: ended } = z.object({ status: z.string() }).parse(await answer.json());
      const past = z.object({ operations: z.array(z.object({ operation: z.string() })) });
      const { operations: history } = past.parse(await (await call('GET', 'operations')).json());
      const [now] = await tenant.query<{ desired: string }>('SELECT desired FROM agents');
      return {
        status: answer.status,
        ended,
        phase,
        containerSteps: agent.containerSteps,
        desired: now?.desired,
        history: history.map((each) => each.operation),
      };
    } finally {
      for (const worker of workers) worker.shutdown();
      await running;
    }
  } finally {
    await backend.close();
    await temporal.close();
    await database.close();
  }
}
