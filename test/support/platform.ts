import { queryRows } from '../platform/database/catalog.js';
import { randomBytes, randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { NativeConnection, type Worker } from '@temporalio/worker';
import type Docker from 'dockerode';
import type { Logger } from 'pino';
import { createBackend } from '../../api/backend/backend.js';
import type { BackendDependencies } from '../../api/backend/dependencies.js';
import {
  createContainersListener,
  type ContainersDependencies,
} from '../../api/containers/containers.js';
import {
  accountDeletionRuns,
  cloneRuns,
  emailRuns,
  mailRuns,
  securityEventRuns,
  swarmRuns,
  verificationRuns,
  videoRuns,
} from '../../temporal/row-runs.js';
import { Supervisors } from '../../temporal/supervisors.js';
import { TemporalTraceHistories } from '../../temporal/trace-histories.js';
import { startTaskRun } from '../../temporal/task-runs.js';
import { TaskSchedules } from '../../temporal/task-schedules.js';
import { BackendClient } from '../../api/web/backend-client.js';
import type { WebDependencies } from '../../api/web/dependencies.js';
import { createWeb } from '../../api/web/web.js';
import { createAgentBus } from '../../src/agent-ai-services.js';
import { AgentCallerLookup } from '../../src/agents/credentials/agent-caller-lookup.js';
import type { AgentSupervisors } from '../../src/agents/operations/supervisors.js';
import type { Plan } from '../../src/types/plans.js';
import { loadSettings, type Settings } from '../../src/settings.js';
import type { AgentContainers } from '../../src/docker/containers/agent-containers.js';
import type { DiskLimits } from '../../src/docker/containers/disk-limits.js';
import { DockerHost } from '../../src/docker/containers/docker-host.js';
import type { Database } from '../../src/platform/database/database.js';
import type { SecretBox } from '../../src/platform/secrets/secret-box.js';
import {
  createAccountDeletions,
  createApiServices,
  createHostServices,
  createWorkerServices,
} from '../../src/services.js';
import type { Meter } from '../../src/ai/usage/meter.js';
import type { LocalRepairTimes } from '../../src/agents/local-repair/local-repair.js';
import { DatabaseGate } from '../../worker/database-gate.js';
import { followDocker } from '../../worker/follow-docker.js';
import { followRowsPeriodically } from '../../worker/follow-rows.js';
import {
  accountDeletions,
  agentEmails,
  clones,
  mails,
  securityEvents,
  swarms,
  taskRuns,
  verifications,
  videos,
} from '../../worker/handed-rows.js';
import { handOverPeriodically } from '../../worker/hand-over.js';
import { openLocalRepair } from '../../worker/local-repair.js';
import { createHostWorkers, createPlatformWorkers } from '../../worker/platform-worker.js';
import { HostLease } from '../../worker/report-host.js';
import { followedTasks } from '../../worker/schedule-tasks.js';
import { sendNotifications } from '../../worker/send-notifications.js';
import { ensureTestImage } from '../agent-image/ensure-test-image.js';
import { testDocker } from './docker.js';
import { until } from './until.js';
import { makeAccount, signIn, type TestAccount } from './account.js';
import { call, type Answer, type CallOptions } from './http.js';
import { ADMIN_EMAIL, keptLog, testEnvironment } from './platform-environment.js';
import { testDatabase } from './postgres.js';
import { startProvider, type ProviderStub } from './provider-stub.js';
import { workspaceHelper } from './workspace-helper.js';
import { testTemporal, workflowCode, type TestTemporal } from './temporal.js';

/** Base address of links to workflow runs; it is never fetched. */
export const TEMPORAL_UI = 'http://temporal-ui.test';

export { ADMIN_EMAIL };

export interface TestUser extends TestAccount {
  /** Cookie header that signs a request in. */
  readonly cookie: string;
}

export interface PlatformOptions {
  /** Environment variables that override the fixture's; undefined removes a variable. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** False starts no workers, so that requested work stays pending. */
  readonly workers?: boolean;
  /** Returns the address at which the workers reach Temporal. */
  readonly temporalForWorkers?: (address: string) => Promise<string>;
  /** Times of the host's local repairs, in milliseconds; by default as in production. */
  readonly localRepair?: LocalRepairTimes;
  /** Disk limits for the memories of agents; may change during the test. */
  readonly disk?: DiskLimits;
  /** Replacement for the agents' supervisors in the API. */
  readonly supervisors?: (database: Database) => AgentSupervisors;
  /** Services that the API cannot reach from the start. */
  readonly dead?: readonly ('docker' | 'temporal' | 'backend')[];
}

/** The whole product in this process, on real servers, with data of its own. */
export interface TestPlatform {
  readonly settings: Settings;
  readonly db: Database;
  /** Runs a statement as the database owner, for changes that the serving role may not make. */
  asOwner(sql: string): Promise<void>;
  readonly docker: Docker;
  readonly dockerHost: DockerHost;
  readonly containers: AgentContainers;
  readonly temporal: TestTemporal;
  /** Supervisors that reach Temporal even if the API cannot. */
  readonly supervisors: Supervisors;
  readonly provider: ProviderStub;
  readonly meter: Meter;
  readonly secrets: SecretBox;
  readonly log: Logger;
  /** Log lines of the listeners, each a JSON object. */
  readonly logged: readonly string[];
  readonly internalKey: string;
  /** Addresses of the three listeners. */
  readonly webUrl: string;
  readonly backendUrl: string;
  readonly agentsUrl: string;
  /** Dependencies of the endpoints, for tests that walk all endpoints. */
  readonly dependencies: {
    readonly web: WebDependencies;
    readonly backend: BackendDependencies;
    readonly agents: ContainersDependencies;
  };

  /** Creates a signed-in user. */
  signUp(plan?: Plan, email?: string): Promise<TestUser>;
  /** Calls the web API as a user or anonymously. */
  web(
    user: TestUser | undefined,
    method: string,
    path: string,
    options?: CallOptions,
  ): Promise<Answer>;
  /** Calls the backend with the internal key, on behalf of a user or of none. */
  backend(
    user: { readonly id: string } | undefined,
    method: string,
    path: string,
    options?: CallOptions,
  ): Promise<Answer>;
  /** Creates an agent as the user would and waits until it runs. */
  runningAgent(user: TestUser, body?: Readonly<Record<string, unknown>>): Promise<string>;
  /** Waits until the backend reports this status for the agent; 30 s by default. */
  becomes(agentId: string, status: string, timeoutMs?: number): Promise<Answer>;
  /** Sends an order to the test program in the agent's container. */
  orderAgent(agentId: string, order: unknown): Promise<void>;
  /** Records the host's state now, before the next report. */
  reportHost(): Promise<void>;
  /** Starts the workers; an option can leave operator notifications in the outbox. */
  startWorkers(options?: { readonly notifying?: boolean }): Promise<void>;
  stopWorkers(): Promise<void>;
  /** Lists the names of an agent's Docker resources: container, network, volume. */
  resourcesOf(agentId: string): Promise<string[]>;
  close(): Promise<void>;
}

export async function testPlatform(options: PlatformOptions = {}): Promise<TestPlatform> {
  const cleanups: (() => Promise<unknown>)[] = [];
  const close = async () => {
    const failures: unknown[] = [];
    for (const cleanup of cleanups.splice(0).reverse()) {
      await cleanup().catch((error: unknown) => failures.push(error));
    }
    if (failures.length > 0)
      throw new AggregateError(failures, 'the platform did not stop cleanly');
  };
  try {
    return { ...(await build(options, cleanups)), close };
  } catch (error) {
    await close().catch(() => undefined);
    throw error;
  }
}

async function build(
  options: PlatformOptions,
  cleanups: (() => Promise<unknown>)[],
): Promise<Omit<TestPlatform, 'close'>> {
  const database = await testDatabase();
  cleanups.push(database.close);
  const provider = await startProvider();
  cleanups.push(provider.close);
  const temporal = await testTemporal();
  cleanups.push(temporal.close);

  const test = testDocker();
  cleanups.push(test.close);
  const isDead = (part: 'docker' | 'temporal' | 'backend') => options.dead?.includes(part) === true;
  const dockerHost = isDead('docker') ? 'unix:///nowhere/docker.sock' : process.env.DOCKER_HOST;
  const { installation, labels } = test;
  const docker = new DockerHost({ dockerHost, installation, labels, disk: options.disk });

  const media = await mkdtemp(path.join(tmpdir(), 'aps-media-'));
  cleanups.push(() => rm(media, { recursive: true }));
  const internalKey = `internal-${randomBytes(16).toString('hex')}`;
  const settings = loadSettings(
    testEnvironment(
      {
        DATABASE_URL: database.url,
        INTERNAL_API_KEY: internalKey,
        OPENAI_BASE_URL: provider.baseUrl,
        OPENAI_API_KEY: provider.apiKey,
        MEDIA_ROOT: media,
        AGENT_RUNTIME_IMAGE:
          options.workers === false ? 'none' : await ensureTestImage(test.docker),
      },
      options.env,
    ),
  );
  const { log, lines } = keptLog();
  const db = database.db;
  const supervisors = new Supervisors(temporal.client, TEMPORAL_UI);
  // Not closed: the SDK keeps retrying, and throws if the connection is closed by then.
  const nowhere = () => Connection.lazy({ address: '127.0.0.1:1' });
  const seenByApi = isDead('temporal') ? new Client({ connection: nowhere() }) : temporal.client;

  const folder = await mkdtemp(path.join(tmpdir(), 'aps-journal-'));
  cleanups.push(() => rm(folder, { recursive: true }));
  const services = createApiServices({
    settings: { ...settings, process: { ...settings.process, dataDir: folder } },
    database: db,
    docker,
    supervisors: options.supervisors?.(db) ?? new Supervisors(seenByApi, TEMPORAL_UI),
    log,
    helper: workspaceHelper,
  });
  const { ai, secrets } = services;
  cleanups.push(() => ai.close());

  const agentCallers = new AgentCallerLookup(db, settings.accounts);
  const agentBus = createAgentBus({ settings, database: db });
  const backendParts = {
    ...services,
    ...agentBus,
    agentCallers,
    settings,
    database: db,
    docker,
    log,
    traceHistories: new TemporalTraceHistories(seenByApi, TEMPORAL_UI),
  };
  const backendListening = await createBackend(backendParts).listen('127.0.0.1', 0);
  cleanups.push(backendListening.close);
  const webParts = {
    ...backendParts,
    backend: new BackendClient(
      isDead('backend') ? 'http://127.0.0.1:1' : backendListening.url,
      settings.http.internalApiKey,
    ),
  };
  const webListening = await createWeb(webParts).listen('127.0.0.1', 0);
  cleanups.push(webListening.close);
  const bridge = isDead('docker') ? '127.0.0.1' : await docker.bridgeAddress();
  const forAgents = createContainersListener(backendParts);
  const agentsListening = await forAgents.listen(bridge, 0);
  cleanups.push(agentsListening.close);

  // Reports without workers too: requested work then waits for a worker, as after a restart.
  const reporting = new AbortController();
  cleanups.push(() => Promise.resolve(reporting.abort()));
  const { host: id, hostCapacity: capacity, portRange: ports } = settings.agents;
  const host = { id, capacity, ports, url: settings.hosts.listener?.url };
  const lease = new HostLease({
    database: db,
    docker: options.disk ? docker : test.host,
    host,
    egress: () => ({ status: 'guarded', reason: null, refuses: false }),
    log,
  });
  await lease.report();
  void lease.keep(reporting.signal);

  let workers: { worker: Worker; running: Promise<void> }[] = [];
  let stopFollowing: () => Promise<void> = () => Promise.resolve();
  let closeConnection = () => Promise.resolve();
  const startWorkers = async ({
    notifying: notifies = true,
  }: { readonly notifying?: boolean } = {}) => {
    const agents = { ...settings.agents, aiPort: agentsListening.port };
    const onAgentsPort = { ...settings, agents };
    const services = createWorkerServices({ settings: onAgentsPort, database: db, log });
    const hostServices = createHostServices({ settings: onAgentsPort, database: db, docker });
    const { namespace } = temporal;
    const connection = options.temporalForWorkers
      ? await NativeConnection.connect({
          address: await options.temporalForWorkers(temporal.address),
        })
      : temporal.connection;
    if (options.temporalForWorkers) closeConnection = () => connection.close();
    const local = await openLocalRepair({
      settings: { ...settings, process: { ...settings.process, dataDir: folder } },
      database: db,
      docker,
      log,
      atHand: { connected: { connection, namespace, supervisors } },
      ...(options.localRepair && { times: options.localRepair }),
    });
    const parts = {
      connection,
      namespace,
      settings: onAgentsPort,
      services,
      hostServices,
      accountDeletions: createAccountDeletions({
        settings: onAgentsPort,
        database: db,
        docker,
        supervisors,
        log,
      }),
      supervisors,
      database: db,
      docker,
      helper: workspaceHelper,
      ...local.shared,
      code: await workflowCode(),
      gate: new DatabaseGate(),
    };
    const made = await Promise.all([createPlatformWorkers(parts), createHostWorkers(parts)]);
    workers = made.flat().map((worker) => ({ worker, running: worker.run() }));
    const ending = new AbortController();
    setMaxListeners(0, ending.signal); // every part adds a listener, as in a worker process
    const repairing = local.run(ending.signal);
    const following = followDocker(
      { database: db, supervisors, docker, log, host: settings.agents.host },
      ending.signal,
    );
    const outbox = { database: db, notifier: services.notifier, log };
    const notifying = notifies ? sendNotifications(outbox, ending.signal) : undefined;
    const { client } = temporal;
    const handing = [
      mails(db, mailRuns(client)),
      securityEvents(securityEventRuns(client)),
      accountDeletions(accountDeletionRuns(client)),
      clones(cloneRuns(client)),
      ...(settings.email.apiKey === undefined ? [] : [agentEmails(emailRuns(client))]),
      verifications(verificationRuns(client)),
      swarms(services.swarms, swarmRuns(client)),
      videos(services.videoStore, videoRuns(client)),
      taskRuns(db, (run) => startTaskRun(client, run)),
    ].map((handed) => handOverPeriodically({ database: db, log }, handed, ending.signal));
    const tasks = { schedules: new TaskSchedules(client), runs: services.taskRuns };
    const scheduling = followRowsPeriodically(
      followedTasks({ database: db, log, ...tasks }),
      log,
      ending.signal,
    );
    stopFollowing = async () => {
      ending.abort();
      await Promise.all([following, repairing, notifying, scheduling, ...handing]);
    };
  };
  const stopWorkers = async () => {
    const ending = workers.splice(0);
    for (const { worker } of ending) if (worker.getState() === 'RUNNING') worker.shutdown();
    await Promise.all([stopFollowing(), ...ending.map(({ running }) => running)]);
    await closeConnection();
    closeConnection = () => Promise.resolve();
  };
  cleanups.push(stopWorkers);
  if (options.workers !== false) await startWorkers();

  const web: TestPlatform['web'] = (user, method, path, given) =>
    call(webListening.url, method, path, {
      ...given,
      headers: { ...(user && { cookie: user.cookie }), ...given?.headers },
    });
  const backend: TestPlatform['backend'] = (user, method, path, given) =>
    call(backendListening.url, method, path, {
      ...given,
      headers: {
        authorization: `Bearer ${internalKey}`,
        ...(user && { 'x-user-id': user.id }),
        ...given?.headers,
      },
    });
  /** Returns the last log lines that operators should read. */
  const warned = () => lines.filter((line) => JSON.parse(line).level >= 40).slice(-10);
  /** Returns the response of a preparing step. @throws if it is not a success. */
  const ok = (answer: Answer): Answer => {
    if (answer.status < 300) return answer;
    throw new Error([`unexpected ${answer.status}: ${answer.text}`, ...warned()].join('\n'));
  };
  const becomes = async (agentId: string, status: string, timeoutMs?: number) => {
    let last: Answer | undefined;
    try {
      return await until(async () => {
        last = await backend(undefined, 'GET', `/api/agents/${agentId}`);
        return last.body.status === status && last;
      }, timeoutMs);
    } catch (error) {
      const became = [`is not ${status}: ${last?.text ?? ''}`, ...warned()].join('\n');
      throw new Error(became, { cause: error });
    }
  };

  return {
    settings,
    db,
    async asOwner(sql) {
      await queryRows(database.ownerUrl, sql);
    },
    docker: test.docker,
    dockerHost: docker,
    containers: docker.containers,
    temporal,
    supervisors,
    provider,
    meter: ai.meter,
    secrets,
    log,
    logged: lines,
    internalKey,
    webUrl: webListening.url,
    backendUrl: backendListening.url,
    agentsUrl: agentsListening.url,
    dependencies: { web: webParts, backend: backendParts, agents: backendParts },
    web,
    backend,
    becomes,
    reportHost: () => lease.report(),
    startWorkers,
    stopWorkers,
    async signUp(plan, email) {
      const account = await makeAccount(db, { email, isAdmin: email === ADMIN_EMAIL });
      const cookie = await signIn(db, account);
      if (plan !== undefined) {
        const body = { userId: account.id, plan };
        ok(await backend(undefined, 'POST', '/api/subscriptions/deploy', { body }));
      }
      return { ...account, cookie };
    },
    async runningAgent(user, body = {}) {
      const made = await web(user, 'POST', '/api/agents/provision', {
        body: { name: `agent ${randomUUID().slice(0, 8)}`, ...body },
      });
      const { id } = ok(made).body.agent;
      await becomes(id, 'active');
      return id;
    },
    async orderAgent(agentId, order) {
      const state = await docker.containers.inspect(agentId);
      const reported = await fetch(`http://127.0.0.1:${state?.port}/test`, {
        method: 'POST',
        body: JSON.stringify(order),
        signal: AbortSignal.timeout(10_000),
      });
      await reported.text();
    },
    async resourcesOf(agentId) {
      const filters = { label: Object.entries(test.labels).map((pair) => pair.join('=')) };
      const [found, networks, { Volumes: volumes }] = await Promise.all([
        test.docker.listContainers({ all: true, filters }),
        test.docker.listNetworks({ filters: JSON.stringify(filters) }),
        test.docker.listVolumes({ filters: JSON.stringify(filters) }),
      ]);
      return [
        ...found.flatMap(({ Names }) => Names.map((name) => `container ${name}`)),
        ...networks.map(({ Name }) => `network ${Name}`),
        ...volumes.map(({ Name }) => `volume ${Name}`),
      ].filter((name) => name.includes(agentId));
    },
  };
}
