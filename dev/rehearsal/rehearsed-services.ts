import { chown, mkdir, readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import path from 'node:path';
import { StartFailure } from '../failure.js';
import { poll } from '../poll.js';
import { startPostgres } from '../postgres/postgres.js';
import { minimalEnvironment } from '../processes/minimal-environment.js';
import { lastLines, startProcess, type ServerProcess } from '../processes/process.js';
import { lastWords, run } from '../processes/run.js';
import { projectRoot } from '../root.js';
import { startTemporal } from '../temporal/temporal.js';
import { withOwnAuthority } from './caddy-config.js';
import { PLACES } from './machine.js';
import type { Service } from './project.js';

/** The user of our image, and of all files of secrets. */
const USER = 1000;

const OUR_IMAGE = /^agent-platform-service:/;

const JOB_MS = 120_000;
const UP_MS = 180_000;
const PROBE_MS = 10_000;
const SICK_MS = 60_000;
const STOP_MS = 40_000;

const POSTGRES_PORT = 5432;
const TEMPORAL_PORT = 7233;
const TEMPORAL_UI_PORT = 8080;

/** Two processes of one program are beside each other here, so one has other ports for operators. */
const HOST_METRICS_PORT = '9475';

/** A service that runs here. */
interface Up {
  readonly name: string;
  isHealthy(): Promise<boolean>;
  stop(): Promise<void>;
}

/** Runs the services of docker-compose.yml as processes of this machine. */
export class RehearsedServices {
  /** Lines about the services that ran, and about those that were only checked. */
  readonly ran: string[] = [];
  readonly checked: string[] = [];
  readonly #up: Up[] = [];
  readonly #folder: string;
  readonly #runDir: string;
  readonly #temporalCli: string;

  constructor(folder: string, temporalCli: string) {
    this.#folder = folder;
    this.#runDir = path.join(folder, 'run');
    this.#temporalCli = temporalCli;
  }

  /** Starts a service, and resolves when it is healthy or, as a job, has ended. @throws StartFailure */
  async start(name: string, service: Service, isJob: boolean): Promise<void> {
    switch (name) {
      case 'postgres':
        return this.#startPostgres(service);
      case 'temporal':
        return this.#startTemporal();
      case 'temporal-ui':
        this.ran.push('temporal-ui: the one of the development server');
        return this.#wait({
          name,
          isHealthy: () => answersAt(TEMPORAL_UI_PORT),
          stop: () => Promise.resolve(),
        });
      case 'temporal-schema':
        this.checked.push(
          'temporal-schema: the development server of Temporal has its own database',
        );
        return;
      case 'caddy':
        return this.#startCaddy(service);
      case 'haproxy':
        return this.#startHaproxy(service);
      default:
        return isJob ? this.#runJob(name, service) : this.#startOwnCommand(name, service);
    }
  }

  /** Returns the names of services that are not healthy, as Compose judges: by several probes. */
  async unhealthy(): Promise<readonly string[]> {
    const names: string[] = [];
    for (const each of this.#up) {
      const probe = async () => (await each.isHealthy()) || undefined;
      if ((await poll(probe, { timeoutMs: SICK_MS })) === undefined) names.push(each.name);
    }
    return names;
  }

  /** Stops all services, the last one first. */
  async stop(): Promise<void> {
    for (const each of this.#up.splice(0).reverse()) await each.stop();
  }

  async #startPostgres({ command }: Service): Promise<void> {
    const settings = (command ?? []).filter((word) => word.includes('='));
    const password = await readFile(path.join(PLACES.secrets, 'postgres_password'), 'utf8');
    const server = await startPostgres({
      dataDir: path.join(this.#folder, 'postgres'),
      runDir: this.#runDir,
      port: POSTGRES_PORT,
      password,
      settings: valuesOf(settings),
    });
    const probe = ['pg_isready', '-q', '-h', '127.0.0.1'];
    await this.#wait({
      name: 'postgres',
      isHealthy: () => succeeds(probe, minimalEnvironment()),
      stop: () => server.stop(),
    });
    this.ran.push('postgres: PostgreSQL of the npm package, with the settings of its command');
  }

  async #startTemporal(): Promise<void> {
    const server = await startTemporal({
      cli: this.#temporalCli,
      runDir: this.#runDir,
      port: TEMPORAL_PORT,
      uiPort: TEMPORAL_UI_PORT,
    });
    await this.#wait({
      name: 'temporal',
      isHealthy: () => answersAt(TEMPORAL_PORT),
      stop: () => server.stop(),
    });
    this.ran.push("temporal: the development server of Temporal's CLI, in place of its image");
  }

  async #startCaddy(service: Service): Promise<void> {
    const env = {
      ...environmentOf(service),
      XDG_DATA_HOME: await this.#volume('caddy'),
      XDG_CONFIG_HOME: await this.#volume('caddy-config'),
    };
    const file = path.join(PLACES.app, 'deploy', 'Caddyfile');
    const config = path.join(this.#folder, 'caddy.json');
    await withOwnAuthority(file, config, env);
    await this.#startProcess('caddy', service, env, ['caddy', 'run', '--config', config]);
    this.ran.push("caddy: with deploy/Caddyfile, and certificates of Caddy's own authority");
  }

  async #startHaproxy(service: Service): Promise<void> {
    const file = path.join(PLACES.app, 'deploy', 'haproxy.cfg');
    // The image's own command.
    await this.#startProcess('haproxy', service, environmentOf(service), ['haproxy', '-f', file]);
    this.ran.push("haproxy: Debian's, with deploy/haproxy.cfg");
  }

  async #runJob(name: string, service: Service): Promise<void> {
    await this.#makeVolumes(service);
    const [program = '', ...args] = asUser(service, commandOf(service));
    try {
      await run(program, args, {
        cwd: OUR_IMAGE.test(service.image) ? PLACES.app : this.#folder,
        env: await this.#environmentOf(name, service),
        timeout: JOB_MS,
      });
    } catch (cause) {
      throw new StartFailure(`The job ${name} failed: ${lastWords(cause)}`, { cause });
    }
    this.ran.push(`${name}: ended with 0`);
  }

  async #startOwnCommand(name: string, service: Service): Promise<void> {
    const env = await this.#environmentOf(name, service);
    await this.#makeVolumes(service);
    await this.#startProcess(name, service, env, commandOf(service));
    this.ran.push(`${name}: ${commandOf(service).join(' ')}`);
  }

  async #startProcess(
    name: string,
    service: Service,
    env: NodeJS.ProcessEnv,
    words: readonly string[],
  ): Promise<void> {
    const [command = '', ...args] = asUser(service, words);
    const server = await startProcess({
      name,
      command,
      args,
      env,
      cwd: OUR_IMAGE.test(service.image) ? PLACES.app : '/',
      runDir: this.#runDir,
    });
    const probe = probeOf(name, service);
    await this.#wait(
      {
        name,
        isHealthy: async () => !server.hasEnded() && (await succeeds(probe, env)),
        stop: () => server.stop(STOP_MS),
      },
      server,
    );
  }

  async #wait(up: Up, server?: ServerProcess): Promise<void> {
    this.#up.push(up);
    const outcome = await poll(
      async () => (server?.hasEnded() ? 'ended' : (await up.isHealthy()) ? 'healthy' : undefined),
      { timeoutMs: UP_MS },
    );
    if (outcome === 'healthy') return;
    const end = server === undefined ? '' : `; the end of its log:\n${lastLines(server.logFile)}`;
    throw new StartFailure(`${up.name} is not healthy${end}`);
  }

  async #environmentOf(name: string, service: Service): Promise<NodeJS.ProcessEnv> {
    const env = environmentOf(service);
    if (!OUR_IMAGE.test(service.image)) return env;
    return {
      ...(await imageEnvironment()),
      ...env,
      DATA_DIR: await this.#volume(name),
      ...(name === 'host' && { WORKER_METRICS_LISTEN: `127.0.0.1:${HOST_METRICS_PORT}` }),
    };
  }

  async #makeVolumes({ volumes }: Service): Promise<void> {
    for (const { source, type } of volumes) {
      if (type === 'volume' && source !== undefined) await this.#volume(source);
    }
  }

  async #volume(name: string): Promise<string> {
    const folder = path.join(PLACES.volumes, name);
    await mkdir(folder, { recursive: true });
    await chown(folder, USER, USER);
    return folder;
  }
}

/** Returns the command of a service, with the files and volumes that it mounts at their places here. */
function commandOf({ command, entrypoint, volumes }: Service): readonly string[] {
  const placed = (word: string) =>
    volumes.reduce((text, { source = '', target, type }) => {
      if (type === 'volume') {
        return text.replaceAll(`${target}/`, `${path.join(PLACES.volumes, source)}/`);
      }
      if (type !== 'bind') return text;
      return text.replaceAll(target, source.replace(/^.*\/deploy\//, `${PLACES.app}/deploy/`));
    }, word);
  return [...(entrypoint ?? []), ...(command ?? [])].map(placed);
}

/** Returns a command line with the user, the groups and the capabilities of the service's container. */
function asUser({ cap_add: added, group_add: groups }: Service, words: readonly string[]) {
  const capabilities = added.map((each) => `,+${each.toLowerCase()}`).join('');
  return [
    'setpriv',
    ...[`--reuid=${USER}`, `--regid=${USER}`, '--no-new-privs'],
    groups.length > 0 ? `--groups=${groups.join(',')}` : '--clear-groups',
    ...['inh', 'ambient', 'bounding-set'].map((set) =>
      set === 'bounding-set' ? `--${set}=-all${capabilities}` : `--${set}-caps=-all${capabilities}`,
    ),
    ...words,
  ];
}

function environmentOf({ environment }: Service): NodeJS.ProcessEnv {
  const set = Object.entries(environment).filter(([, value]) => value !== null);
  return {
    PATH: `${PLACES.programs}:${process.env.PATH ?? ''}`,
    ...Object.fromEntries(set),
  };
}

/** Reads the variables that our image sets. */
async function imageEnvironment(): Promise<NodeJS.ProcessEnv> {
  const text = await readFile(path.join(projectRoot, 'Dockerfile'), 'utf8');
  const [, line = ''] = /^ENV (.+)$/m.exec(text) ?? [];
  return valuesOf(line.split(' '));
}

/** Returns the values of words like `name=value`. */
function valuesOf(words: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    words.map((word) => {
      const [name = '', value = ''] = word.split('=', 2);
      return [name, value];
    }),
  );
}

function probeOf(name: string, { healthcheck }: Service): readonly string[] {
  const [kind, ...words] = healthcheck?.test ?? [];
  if (kind === 'CMD-SHELL') return ['sh', '-c', ...words];
  return name === 'host' ? words.map((word) => word.replace('9465', HOST_METRICS_PORT)) : words;
}

async function succeeds(words: readonly string[], env: NodeJS.ProcessEnv): Promise<boolean> {
  const [program = '', ...args] = words;
  return run(program, args, { cwd: PLACES.app, env, timeout: PROBE_MS }).then(
    () => true,
    () => false,
  );
}

async function answersAt(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => resolve(true));
    socket.once('connect', () => socket.destroy()).once('error', () => resolve(false));
  });
}
