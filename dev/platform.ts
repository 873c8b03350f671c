import path from 'node:path';
import { LABEL } from '../src/containers/container-spec.js';
import { ensureRolesAndDatabase } from '../src/database/roles.js';
import { obtainAgentImage } from './agent-image/obtain-image.js';
import { findLabelled } from './docker/labelled.js';
import { obtainDocker, type Docker } from './docker/obtain-docker.js';
import { startDockerDaemon } from './docker/docker-daemon.js';
import { startPostgres } from './postgres/postgres.js';
import { findTemporalCli } from './temporal/temporal-binary.js';
import { startTemporal } from './temporal/temporal.js';
import { describeFailure, DiskFailure, StartFailure } from './failure.js';
import { goneInstallations, rememberInstallation } from './installations.js';
import { keepRunning, keepTrying } from './keep-running.js';
import { chooseEnginePorts, type EnginePorts } from './kept-ports.js';
import { say, step } from './report.js';
import { builtProgram } from './root.js';
import { lastWords, run } from './processes/run.js';
import type { Secrets } from './secrets.js';
import { startService } from './services.js';
import { isSet, type LauncherSettings } from './settings.js';

/** What is running, in the order it was started. */
export interface Started {
  readonly name: string;
  stop(): Promise<void>;
}

/** Starts engines and services one after the other and remembers what is to be stopped. */
export class Platform {
  /** The environment of the services, complete once all engines are up. */
  readonly env: NodeJS.ProcessEnv;
  readonly #started: Started[] = [];
  #ownTemporal = false;

  constructor(
    private readonly settings: LauncherSettings,
    private readonly secrets: Secrets,
    env: NodeJS.ProcessEnv,
  ) {
    this.env = { ...env };
    if (!isSet(env, 'INTERNAL_API_KEY')) this.env.INTERNAL_API_KEY = secrets.internalApiKey;
    if (!isSet(env, 'ENCRYPTION_KEY')) this.env.ENCRYPTION_KEY = secrets.encryptionKey;
  }

  /** Brings up PostgreSQL, Temporal and Docker, beside each other. Returns the Docker engine. */
  async startEngines(): Promise<Docker> {
    const ports = await chooseEnginePorts(this.settings.dataDir);
    const [, , docker] = await Promise.all([
      this.#startPostgres(ports),
      this.#startTemporal(ports),
      this.#startDocker(),
    ]);
    return docker;
  }

  /** Brings the schema up to date. */
  async migrate(): Promise<void> {
    const script = builtProgram('scripts', 'migrate.js');
    try {
      const said = await run(process.execPath, ['--enable-source-maps', script], {
        env: this.env,
        timeout: 300_000,
      });
      if (said.trim()) say(said.trim());
    } catch (cause) {
      throw new StartFailure(`The database could not be migrated: ${lastWords(cause)}`, { cause });
    }
  }

  /** Finds or makes the image for new agents on the engine. */
  async obtainImage(): Promise<void> {
    if (isSet(this.env, 'AGENT_RUNTIME_IMAGE')) return;
    const image = await obtainAgentImage(this.env, this.settings.runDir);
    if (image !== undefined) this.env.AGENT_RUNTIME_IMAGE = image;
  }

  /** Starts worker and API; each is started again when it dies. */
  async startServices(): Promise<void> {
    const start = (name: 'worker' | 'api') => () =>
      startService({ name, env: this.env, runDir: this.settings.runDir });
    // Only the worker cannot do without Temporal, which may be somewhere else and come up later.
    const keepWorker = this.#ownTemporal ? keepRunning : keepTrying;
    const worker = await keepWorker('worker', start('worker'));
    this.#started.push({ name: 'worker', stop: () => worker.stop() });
    const api = await keepRunning('api', start('api'));
    this.#started.push({ name: 'api', stop: () => api.stop() });
  }

  /** Stops everything, last started first, going on past what cannot be stopped. */
  async stop(): Promise<void> {
    for (const each of this.#started.splice(0).reverse()) {
      try {
        await each.stop();
      } catch (error) {
        say(`${each.name} could not be stopped: ${describeFailure(error)}`);
      }
    }
  }

  async #startPostgres(ports: EnginePorts): Promise<void> {
    if (isSet(this.env, 'DATABASE_URL')) return;
    const { dataDir, runDir } = this.settings;
    const start = () =>
      startPostgres({
        dataDir: path.join(dataDir, 'postgres'),
        runDir,
        port: ports.postgres,
        password: this.secrets.postgresPassword,
      });
    const postgres = await step(`Starting PostgreSQL on port ${ports.postgres}`, () =>
      keepRunning('PostgreSQL', start),
    );
    this.#started.push({ name: 'PostgreSQL', stop: () => postgres.stop() });
    const urls = await ensureRolesAndDatabase(postgres.superuserUrl, {
      database: 'agent_platform',
      ownerRole: 'agent_platform_owner',
      ownerPassword: this.secrets.ownerPassword,
      servingRole: 'agent_platform_api',
      servingPassword: this.secrets.servingPassword,
    });
    this.env.DATABASE_URL = urls.servingUrl;
    this.env.DATABASE_OWNER_URL = urls.ownerUrl;
  }

  async #startTemporal(ports: EnginePorts): Promise<void> {
    if (isSet(this.env, 'TEMPORAL_ADDRESS')) return;
    const { dataDir, runDir } = this.settings;
    const cli = await this.#findTemporal();
    if (cli === undefined) return;
    const start = () =>
      startTemporal({
        cli,
        runDir,
        port: ports.temporal,
        uiPort: ports.temporalUi,
        databaseFile: path.join(dataDir, 'temporal.db'),
      });
    const temporal = await step(`Starting Temporal on port ${ports.temporal}`, () =>
      keepRunning('Temporal', start),
    );
    this.#started.push({ name: 'Temporal', stop: () => temporal.stop() });
    this.#ownTemporal = true;
    this.env.TEMPORAL_ADDRESS = temporal.address;
    this.env.TEMPORAL_UI_URL ??= temporal.uiUrl;
  }

  /** Accounts and all that is only read work without it, so its absence is told and borne. */
  async #findTemporal(): Promise<string | undefined> {
    try {
      return await findTemporalCli(this.settings);
    } catch (error) {
      if (!(error instanceof StartFailure) || error instanceof DiskFailure) throw error;
      say(`${error.message} Until then no agent is created or changed.`);
      return undefined;
    }
  }

  /** What stays on an engine that others use as well, when a data folder is deleted. */
  async #tellLeftovers(dockerHost: string): Promise<void> {
    // Who names the key keeps it elsewhere than in the data folder.
    if (!isSet(process.env, 'ENCRYPTION_KEY')) {
      rememberInstallation(this.settings.dataDir, this.secrets.encryptionKey);
    }
    for (const { name, dataDir } of goneInstallations()) {
      const things = await findLabelled(dockerHost, `${LABEL.installation}=${name}`);
      if (things.length === 0) continue;
      say(
        `Docker has ${things.length} things of an installation that is gone (its data folder was ` +
          `${dataDir}): npm run clean lists them, and removes them after asking.`,
      );
    }
  }

  async #startDocker(): Promise<Docker> {
    const { dataDir, runDir, launcher } = this.settings;
    const dockerDir = path.join(dataDir, 'docker');
    const docker = await obtainDocker({
      dataDir: dockerDir,
      runDir,
      manage: launcher.manageDocker,
    });
    if (docker.host === undefined) return docker;
    this.env.DOCKER_HOST = docker.host;
    const { own } = docker;
    if (own === undefined) {
      await this.#tellLeftovers(docker.host).catch((error: unknown) => {
        say(
          `What is left on Docker of earlier installations is not known: ${describeFailure(error)}`,
        );
      });
      return docker;
    }
    const kept = await keepRunning('The Docker engine', () =>
      own.process.hasEnded() ? startDockerDaemon(dockerDir, runDir) : Promise.resolve(own),
    );
    this.#started.unshift({
      name: 'Docker',
      stop: async () => {
        say(
          'Stopping the agents and the Docker engine, which this start had started; they come back with the next start.',
        );
        await kept.stop();
      },
    });
    return docker;
  }
}
