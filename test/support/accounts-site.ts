import { fork, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Client } from '@temporalio/client';
import { NativeConnection } from '@temporalio/worker';
import { pino } from 'pino';
import { startCodeHost, type TestCodeHost } from '../../dev/accounts/code-host.js';
import {
  RISC_CONFIGURATION,
  startIdentityProvider,
  type TestIdentityProvider,
} from '../../dev/accounts/identity-provider.js';
import { startMailbox, type Mailbox } from '../../dev/accounts/mailbox.js';
import { freePort } from '../../dev/ports.js';
import { startPostgres } from '../../dev/postgres/postgres.js';
import { builtProgram } from '../../dev/root.js';
import { EventSigner } from '../../dev/security-events/event-signer.js';
import { readSettings } from '../../dev/settings.js';
import { findTemporalCli } from '../../dev/temporal/temporal-binary.js';
import { startTemporal } from '../../dev/temporal/temporal.js';
import { Database } from '../../src/platform/database/database.js';
import { migrate } from '../../src/platform/database/migrate.js';
import { databaseUrl, ensureRolesAndDatabase } from '../../src/platform/database/roles.js';
import { LOG_SERIALIZERS } from '../../src/platform/process/log.js';
import { loadSettings, type Settings } from '../../src/settings.js';
import { startAccountWorkers } from './account-workers.js';
import { testEnvironment } from './platform-environment.js';
import { DOMAIN, startQuickAuth, type QuickAuthStub } from './quick-auth.js';
import { quietRuntime } from './temporal.js';

/**
 * The account features as `npm start` runs them: the API in a process of its own, and all files of the
 * API, PostgreSQL and Temporal in one folder.
 */
export interface AccountsSite {
  readonly folder: string;
  readonly settings: Settings;
  readonly webUrl: string;
  readonly ownerUrl: string;
  readonly database: Database;
  readonly temporal: Client;
  readonly mailbox: Mailbox;
  readonly idp: TestIdentityProvider;
  readonly codeHost: TestCodeHost;
  readonly quickAuth: QuickAuthStub;
  /** Signer of the identity provider's security events. */
  readonly signer: EventSigner;
  /** Secrets in the configuration. */
  readonly secrets: readonly string[];
  startApi(): Promise<void>;
  /** Kills the API at once, as a power cut would. */
  killApi(): Promise<void>;
  startWorkers(): Promise<void>;
  /** Stops everything that writes to the folder and keeps the folder. */
  stop(): Promise<void>;
  /** Lists the files that contain any of these texts, with the name of the text. */
  filesWith(texts: ReadonlyMap<string, string>): Promise<string[]>;
  close(): Promise<void>;
}

export async function accountsSite(): Promise<AccountsSite> {
  quietRuntime();
  const folder = await mkdtemp(path.join(tmpdir(), 'aps-accounts-'));
  // As root, PostgreSQL runs as another user that must traverse the folder.
  await chmod(folder, 0o755);
  const [runDir, dataDir] = [path.join(folder, 'run'), path.join(folder, 'api')];
  await mkdir(dataDir);
  /** Cleanups of parts that write to the folder, and of all others; both run in reverse order. */
  const writers: (() => Promise<unknown>)[] = [];
  const others: (() => Promise<unknown>)[] = [];

  const [postgres, temporal] = await Promise.all([
    startPostgres({
      dataDir: path.join(folder, 'postgres'),
      runDir,
      port: await freePort(),
      password: secret(),
      // The data need not survive a power cut.
      settings: { fsync: 'off', max_connections: '100' },
    }),
    startTemporal({
      cli: await findTemporalCli(readSettings(process.env)),
      runDir,
      port: await freePort(),
      uiPort: await freePort(),
      databaseFile: path.join(folder, 'temporal.db'),
    }),
  ]);
  writers.push(postgres.stop, temporal.stop);
  const roles = { ownerRole: 'site_owner', servingRole: 'site_serving' };
  const passwords = { ownerPassword: secret(), servingPassword: secret() };
  const server = postgres.superuserUrl;
  await ensureRolesAndDatabase(server, { database: 'site', ...roles, ...passwords });
  const ownerUrl = databaseUrl(server, 'site', roles.ownerRole, passwords.ownerPassword);
  const url = databaseUrl(server, 'site', roles.servingRole, passwords.servingPassword);
  await migrate(ownerUrl, roles.servingRole);

  const webPort = await freePort();
  const webUrl = `http://127.0.0.1:${webPort}`;
  const signer = await EventSigner.create();
  const [mailbox, codeHost, quickAuth, idp] = await Promise.all([
    startMailbox(),
    startCodeHost(),
    startQuickAuth(),
    startIdentityProvider(`${webUrl}/api/auth/google/callback`, { eventKeys: [signer.published] }),
  ]);
  others.push(mailbox.close, codeHost.close, quickAuth.close, idp.close);
  const secrets = {
    ENCRYPTION_KEY: randomBytes(32).toString('base64'),
    INTERNAL_API_KEY: secret(),
  };
  const env = testEnvironment({
    ...secrets,
    DATABASE_URL: url,
    DATA_DIR: dataDir,
    TEMPORAL_ADDRESS: temporal.address,
    DOCKER_HOST: 'unix:///nowhere/docker.sock',
    WEB_URL: webUrl,
    WEB_PORT: String(webPort),
    BACKEND_PORT: String(await freePort()),
    METRICS_PORT: String(await freePort()),
    SMTP_URL: mailbox.url,
    IDP_ISSUER_URL: idp.issuerUrl,
    IDP_CLIENT_ID: idp.clientId,
    IDP_CLIENT_SECRET: idp.clientSecret,
    IDP_RISC_CONFIGURATION_URL: `${idp.issuerUrl}${RISC_CONFIGURATION}`,
    CODEHOST_URL: codeHost.url,
    CODEHOST_API_URL: codeHost.url,
    CODEHOST_CLIENT_ID: codeHost.clientId,
    CODEHOST_CLIENT_SECRET: codeHost.clientSecret,
    FARCASTER_AUTH_URL: quickAuth.url,
    FARCASTER_DOMAIN: DOMAIN,
  });
  const settings = loadSettings(env);
  const database = new Database(url, { maxConnections: 5 });
  const connection = await NativeConnection.connect({ address: temporal.address });
  const namespace = 'default';
  const client = new Client({ connection, namespace });
  const logFile = path.join(folder, 'worker.log');
  const destination = pino.destination({ dest: logFile, sync: true });
  const log = pino({ level: 'debug', serializers: LOG_SERIALIZERS }, destination);
  writers.push(
    () => connection.close(),
    () => database.close(),
  );

  let api: ChildProcess | undefined;
  let stopWorkers = () => Promise.resolve();
  const endApi = async (signal: NodeJS.Signals) => {
    if (!api) return;
    const ended = once(api, 'exit');
    api.kill(signal);
    api = undefined;
    await ended;
  };
  writers.push(
    () => endApi('SIGTERM'),
    () => stopWorkers(),
  );

  const stop = async () => {
    for (const each of writers.splice(0).reverse()) await each();
  };
  return {
    folder,
    settings,
    webUrl,
    ownerUrl,
    database,
    temporal: client,
    mailbox,
    idp,
    codeHost,
    quickAuth,
    signer,
    secrets: [
      ...Object.values(secrets),
      ...[idp.clientSecret, codeHost.clientSecret],
      ...Object.values(passwords),
    ],
    async startApi() {
      const output = openSync(path.join(folder, 'api.log'), 'a');
      api = fork(builtProgram('api', 'main.js'), {
        env: { PATH: process.env.PATH, ...env, LOG_LEVEL: 'debug' },
        stdio: ['ignore', output, output, 'ipc'],
      });
      closeSync(output);
      const [said] = (await Promise.race([once(api, 'message'), once(api, 'exit')])) as unknown[];
      if (typeof said === 'object') return;
      throw new Error(`The API has ended: ${await readFile(path.join(folder, 'api.log'), 'utf8')}`);
    },
    killApi: () => endApi('SIGKILL'),
    async startWorkers() {
      const temporal = { client, connection, namespace };
      stopWorkers = await startAccountWorkers({ settings, database, temporal, log });
    },
    stop,
    async filesWith(texts) {
      const found: string[] = [];
      for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
        if (!entry.isFile()) continue;
        const file = path.join(entry.parentPath, entry.name);
        const content = await readFile(file);
        for (const [what, text] of texts) {
          if (content.includes(text)) found.push(`${path.relative(folder, file)}: ${what}`);
        }
      }
      return found.sort();
    },
    async close() {
      await stop();
      await Promise.all(others.map((each) => each()));
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const secret = () => randomBytes(16).toString('hex');
