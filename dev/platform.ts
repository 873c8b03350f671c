import path from 'node:path';
import { LOCAL_KEY } from '../src/billing/settings.js';
import { LOCAL_TOKEN } from '../src/videos/settings.js';
import { LOCAL_EMAIL_KEY } from '../src/agents/email/settings.js';
import { isFirstAdminPending } from '../src/accounts/accounts/register.js';
import { LABEL } from '../src/docker/containers/container-spec.js';
import { LOCAL_HELPER_IMAGE } from '../src/docker/egress/helper-image-name.js';
import { Database } from '../src/platform/database/database.js';
import { ensureRolesAndDatabase } from '../src/platform/database/roles.js';
import { startAnvil } from './chain/anvil.js';
import { anvilProgram } from './chain/anvil-program.js';
import { forgetLocalChain, furnish, partiesOf, withLocalChain } from './chain/local-chain.js';
import { startPaymentProcessor } from './billing/payment-processor.js';
import { startVideoProvider } from './video/video-provider.js';
import { ResendStandIn } from './email/resend-stand-in.js';
import { findLabelled } from './docker/labelled.js';
import { obtainDocker, type Docker } from './docker/obtain-docker.js';
import { startDockerDaemon } from './docker/docker-daemon.js';
import { AGENT_IMAGE, EGRESS_IMAGE, obtainImage } from './images/obtain-image.js';
import { obtainIcecast, startIcecast } from './radio/icecast.js';
import { withRadio } from './radio/radio-environment.js';
import { startPostgres } from './postgres/postgres.js';
import { findTemporalCli } from './temporal/temporal-binary.js';
import { startTemporal } from './temporal/temporal.js';
import { freePort } from './ports.js';
import { describeFailure, DiskFailure, StartFailure } from './failure.js';
import { goneInstallations, rememberInstallation } from './installations.js';
import { keepRunning } from './keep-running.js';
import { chooseServerPorts, type ServerPorts } from './kept-ports.js';
import { say, step } from './report.js';
import { builtProgram } from './root.js';
import { minimalEnvironment } from './processes/minimal-environment.js';
import { lastWords, run } from './processes/run.js';
import { withMadeSecrets, type Secrets } from './secrets.js';
import { OWN_DATABASE } from './own-database.js';
import { withOwnSummarizer } from './own-summarizer.js';
import { startService, type ServiceName } from './services.js';
import { isSet, withoutPayer, type LauncherSettings } from './settings.js';

/** Environment variables for the summarizer; its key is the only secret, and opens nothing else. */
const OF_THE_SUMMARIZER =
  /^(HOST|SUMMARIZER_PORT|SUMMARIZER_METRICS_PORT|SUMMARIZER_KEY|OUTBOUND_ALLOW|ALLOWED_HOSTS|TRUSTED_PROXIES|RATE_LIMIT_REQUESTS|REDIS_URL|WEB_URL|BACKEND_URL|WEB_PORT|BACKEND_PORT|EXPOSE_DEVELOPMENT|PRIVATE_HOSTS|TREASURY_ADDRESS|CHAIN_TESTNET|NODE_ENV|LOG_LEVEL)(_FILE)?$/;

/** The product's processes; those in front stop last. */
const SERVICES = ['worker', 'payments', 'api', 'agents-ai', 'summarizer'] as const;

/** The usual port of the stand-in for the payment processor. */
const PROCESSOR_PORT = 3028;

/** The usual port of the stand-in for the video provider. */
const VIDEO_PORT = 3029;

/** The usual port of the stand-in for the e-mail provider. */
const EMAIL_PORT = 3030;

/** A running server or service, in the order of their starts. */
export interface Started {
  readonly name: string;
  stop(): Promise<void>;
}

/** Starts servers and services one after the other, and records what must be stopped. */
export class Platform {
  /** Environment of all processes but the paying one; complete once all servers are up. */
  readonly env: NodeJS.ProcessEnv;
  readonly #started: Started[] = [];
  /** Credentials of the database's owner, only for migrations. */
  #owner: NodeJS.ProcessEnv;
  /** The key that signs payments: an attacker in any other process must not find it. */
  #payer: NodeJS.ProcessEnv;

  readonly #settings: LauncherSettings;
  readonly #secrets: Secrets;

  constructor(settings: LauncherSettings, secrets: Secrets, env: NodeJS.ProcessEnv) {
    this.#settings = settings;
    this.#secrets = secrets;

    const { DATABASE_OWNER_URL, DATABASE_OWNER_URL_FILE, ...others } = env;
    this.#owner = { DATABASE_OWNER_URL, DATABASE_OWNER_URL_FILE };
    const { payer, serving } = withoutPayer(others);
    this.#payer = payer;
    this.env = withMadeSecrets(serving, secrets);
  }

  /** Starts PostgreSQL, Temporal, the chain, Icecast and Docker concurrently. Returns the Docker engine. */
  async startServers(): Promise<Docker> {
    const ports = await chooseServerPorts(this.#settings.dataDir);
    const [docker, noRadio] = await Promise.all([
      this.#startDocker(),
      this.#startRadio(ports),
      this.#startPostgres(ports),
      this.#startTemporal(ports),
      this.#startChain(ports),
      this.#startProcessor(),
      this.#startVideoProvider(),
      this.#startEmailProvider(),
    ]);
    // Last, so that nothing is printed after the sentence of a failed start.
    if (noRadio !== undefined) say(`There is no radio: ${noRadio}`);
    return docker;
  }

  /** Migrates the schema to the current version. */
  async migrate(): Promise<void> {
    const script = builtProgram('scripts', 'migrate.js');
    try {
      const said = await run(process.execPath, ['--enable-source-maps', script], {
        env: { ...this.env, ...this.#owner },
        timeout: 300_000,
      });
      if (said.trim()) say(said.trim());
    } catch (cause) {
      throw new StartFailure(`The database could not be migrated: ${lastWords(cause)}`, { cause });
    }
  }

  /** Returns links with which the people in ADMIN_EMAILS become admins; empty if all of them are admins. */
  async adminLinks(): Promise<string> {
    if (this.#settings.accounts.adminEmails.length === 0) return '';
    const script = builtProgram('scripts', 'admin-links.js');
    return run(process.execPath, [script], { env: this.env, timeout: 60_000 });
  }

  /** Finds or makes the images of the agents and of the egress helpers on the Docker host. */
  async obtainImages(): Promise<void> {
    const { runDir } = this.#settings;
    const { egress } = this.#settings.agents;
    if (egress === 'guarded' && !isSet(this.env, 'AGENT_EGRESS_IMAGE')) {
      const helper = await obtainImage(EGRESS_IMAGE, this.env, runDir, [LOCAL_HELPER_IMAGE]);
      if (helper !== undefined) this.env.AGENT_EGRESS_IMAGE = helper;
    }
    if (isSet(this.env, 'AGENT_RUNTIME_IMAGE')) return;
    const image = await obtainImage(AGENT_IMAGE, this.env, runDir);
    if (image !== undefined) this.env.AGENT_RUNTIME_IMAGE = image;
  }

  /**
   * Starts both workers, the API, the proxy for agents' AI calls and the summarizer concurrently, since each
   * start keeps only one core busy; each is restarted when it ends.
   */
  async startServices(): Promise<void> {
    const start = (name: ServiceName) => () =>
      startService({ name, env: this.#envOf(name), runDir: this.#settings.runDir });
    const starts = SERVICES.map(async (name) => ({
      name,
      service: await keepRunning(name, start(name)),
    }));
    // A failed start must not hide the running servers from `stop`.
    for (const each of await Promise.allSettled(starts)) {
      if (each.status === 'rejected') continue;
      const { name, service } = each.value;
      this.#started.push({ name, stop: () => service.stop() });
    }
    await Promise.all(starts);
  }

  /**
   * Returns a service's environment: only the payments worker gets the key that pays, and the summarizer
   * gets no key but its own.
   */
  #envOf(name: ServiceName): NodeJS.ProcessEnv {
    if (name === 'api') return withOwnSummarizer(this.env, this.#settings.http);
    if (name === 'payments') return { ...this.env, ...this.#payer };
    return name === 'summarizer' ? minimalEnvironment(OF_THE_SUMMARIZER, this.env) : this.env;
  }

  /** Reports whether the next person to register becomes the admin. */
  async awaitsFirstAdmin(): Promise<boolean> {
    const { accounts, database: given } = this.#settings;
    const database = new Database(this.env.DATABASE_URL ?? given.url, { maxConnections: 1 });
    try {
      return await isFirstAdminPending(database, accounts);
    } finally {
      await database.close();
    }
  }

  /** Stops everything, last started first; a failure to stop a part does not block the rest. */
  async stop(): Promise<void> {
    for (const each of this.#started.splice(0).reverse()) {
      try {
        await each.stop();
      } catch (error) {
        say(`${each.name} could not be stopped: ${describeFailure(error)}`);
      }
    }
  }

  /** Starts the stand-in for the payment processor, if the settings select it. */
  async #startProcessor(): Promise<void> {
    const { billing, http } = this.#settings;
    if (billing.secretKey !== LOCAL_KEY) return;
    const processor = await startPaymentProcessor({
      port: await freePort(PROCESSOR_PORT),
      webhookUrl: `${http.ownWebUrl}/api/wallet/top-up`,
    });
    this.#started.push({ name: 'The payment processor', stop: () => processor.close() });
    delete this.env.PAYPROC_SECRET_KEY_FILE;
    Object.assign(this.env, processor.env);
  }

  /**
   * Starts Icecast for the holders of the platform's token. Returns why there is none: everything but
   * the radio works without it.
   */
  async #startRadio(ports: ServerPorts): Promise<string | undefined> {
    const { chain, dataDir, http, launcher, runDir } = this.#settings;
    if (isSet(this.env, 'RADIO_ICECAST_URL')) return undefined;
    if (chain.platformToken === undefined) {
      return 'PLATFORM_TOKEN_ADDRESS, whose holders could use it, is not set.';
    }
    if (!launcher.manageIcecast) {
      return 'MANAGE_ICECAST is never, and RADIO_ICECAST_URL is not set.';
    }
    let program: string;
    try {
      program = await obtainIcecast({ manage: true });
    } catch (error) {
      if (!(error instanceof StartFailure)) throw error;
      return error.message;
    }
    const { env, icecast } = withRadio(this.env, ports.icecast);
    const { adminPassword, authSecret } = icecast;
    const start = () =>
      startIcecast({
        program,
        dir: path.join(dataDir, 'radio'),
        runDir,
        port: ports.icecast,
        backendUrl: http.backendUrl,
        adminPassword,
        authSecret,
      });
    const radio = await step(`Starting Icecast on port ${ports.icecast}`, () =>
      keepRunning('Icecast', start),
    );
    this.#started.push({ name: 'Icecast', stop: () => radio.stop() });
    Object.assign(this.env, env);
    return undefined;
  }

  /** Starts the stand-in for the video provider, if the settings select it. */
  async #startVideoProvider(): Promise<void> {
    if (this.#settings.videos.apiToken !== LOCAL_TOKEN) return;
    const provider = await startVideoProvider({ port: await freePort(VIDEO_PORT) });
    this.#started.push({ name: 'The video provider', stop: () => provider.close() });
    delete this.env.VIDEO_API_TOKEN_FILE;
    Object.assign(this.env, provider.env);
  }

  /** Starts the stand-in for the e-mail provider, if the settings select it. */
  async #startEmailProvider(): Promise<void> {
    const { email, http } = this.#settings;
    if (email.apiKey !== LOCAL_EMAIL_KEY) return;
    const provider = await ResendStandIn.open({
      port: await freePort(EMAIL_PORT),
      webhookUrl: `${http.ownWebUrl}/api/webhooks/email`,
      ...(email.domain !== undefined && { domain: email.domain }),
    });
    this.#started.push({
      name: 'The e-mail provider',
      stop: () => Promise.resolve(provider.close()),
    });
    delete this.env.EMAIL_API_KEY_FILE;
    Object.assign(this.env, provider.env);
  }

  async #startPostgres(ports: ServerPorts): Promise<void> {
    if (isSet(this.env, 'DATABASE_URL')) return;
    const { dataDir, runDir } = this.#settings;
    const start = () =>
      startPostgres({
        dataDir: path.join(dataDir, 'postgres'),
        runDir,
        port: ports.postgres,
        password: this.#secrets.postgresPassword,
      });
    const postgres = await step(`Starting PostgreSQL on port ${ports.postgres}`, () =>
      keepRunning('PostgreSQL', start),
    );
    this.#started.push({ name: 'PostgreSQL', stop: () => postgres.stop() });
    const urls = await ensureRolesAndDatabase(postgres.superuserUrl, {
      ...OWN_DATABASE,
      ownerPassword: this.#secrets.ownerPassword,
      servingPassword: this.#secrets.servingPassword,
    });
    this.env.DATABASE_URL = urls.servingUrl;
    this.#owner = { DATABASE_OWNER_URL: urls.ownerUrl };
  }

  async #startTemporal(ports: ServerPorts): Promise<void> {
    if (isSet(this.env, 'TEMPORAL_ADDRESS')) return;
    const { dataDir, runDir } = this.#settings;
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
    this.env.TEMPORAL_ADDRESS = temporal.address;
    this.env.TEMPORAL_UI_URL ??= temporal.uiUrl;
  }

  /**
   * Returns Temporal's address. A missing Temporal is only reported: accounts and everything read-only
   * work without it.
   */
  async #findTemporal(): Promise<string | undefined> {
    try {
      return await findTemporalCli(this.#settings);
    } catch (error) {
      if (!(error instanceof StartFailure) || error instanceof DiskFailure) throw error;
      say(`${error.message} Until then no agent can be created or changed.`);
      return undefined;
    }
  }

  async #startChain(ports: ServerPorts): Promise<void> {
    const { chain: given, dataDir, paymentSessions, runDir } = this.#settings;
    if (isSet(this.env, 'CHAIN_RPC_URL')) return forgetLocalChain(dataDir);
    if (!this.#hasAnvil()) return;
    const { chainId } = given;
    const parties = partiesOf(given);
    const start = async () => {
      const anvil = await startAnvil({
        stateDir: path.join(dataDir, 'chain'),
        runDir,
        port: ports.chain,
        chainId,
      });
      try {
        const place = { rpcUrl: anvil.rpcUrl, chainId, dataDir };
        const local = await furnish(place, parties, paymentSessions);
        return { ...anvil, local };
      } catch (error) {
        await anvil.stop();
        throw error;
      }
    };
    const chain = await step(`Starting a chain on port ${ports.chain}`, () =>
      keepRunning('The chain', start),
    );
    this.#started.push({ name: 'The chain', stop: () => chain.stop() });
    Object.assign(this.env, withLocalChain(this.env, chain.local));
    if (!isSet(this.#payer, 'OPERATOR_PRIVATE_KEY')) {
      this.#payer = { OPERATOR_PRIVATE_KEY: parties.operator.privateKey };
      this.env.OPERATOR_ADDRESS = parties.operator.address;
    }
  }

  /**
   * Reports whether anvil is installed. A missing anvil is only reported: everything but payments works
   * without it.
   */
  #hasAnvil(): boolean {
    try {
      anvilProgram();
      return true;
    } catch (error) {
      if (!(error instanceof StartFailure)) throw error;
      say(`${error.message} Until then no payments are made.`);
      return false;
    }
  }

  /** Reports objects of deleted data folders that remain on a Docker engine shared with others. */
  async #reportLeftovers(dockerHost: string): Promise<void> {
    // A name from the environment is stored elsewhere, not in the data folder.
    if (this.env.INSTALLATION_ID === this.#secrets.installation) {
      rememberInstallation(this.#settings.dataDir, this.#secrets.installation);
    }
    for (const { name, dataDir } of goneInstallations()) {
      const things = await findLabelled(dockerHost, `${LABEL.installation}=${name}`);
      if (things.length === 0) continue;
      say(
        `Docker has ${things.length} objects of a deleted installation (its data folder was ` +
          `${dataDir}): npm run clean lists them, and removes them after confirmation.`,
      );
    }
  }

  async #startDocker(): Promise<Docker> {
    const { dataDir, runDir, launcher } = this.#settings;
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
      await this.#reportLeftovers(docker.host).catch((error: unknown) => {
        say(
          `Docker could not be checked for leftovers of earlier installations: ${describeFailure(error)}`,
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
          'Stopping the agents and the Docker engine that this start had started; the next start starts them again.',
        );
        await kept.stop();
      },
    });
    return docker;
  }
}
