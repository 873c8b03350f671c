import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { Client, Connection } from '@temporalio/client';
import pg from 'pg';
import { connectDocker } from '../../src/docker/containers/docker-client.js';
import { Place, RUNNING, type Launcher } from '../dev/launcher.js';
import { agentPlaces } from '../support/agent-places.js';
import { remainsOf, removeRemains, type Remains } from '../support/docker-remains.js';

/** A platform as `npm start` runs it: an installation of its own on the shared Docker engine. */
export class RealPlatform {
  readonly docker = connectDocker(process.env.DOCKER_HOST);
  readonly internalApiKey = randomBytes(16).toString('hex');
  readonly #encryptionKey = randomBytes(32);
  #launcher: Launcher | undefined;

  readonly #env: NodeJS.ProcessEnv;

  private constructor(
    readonly place: Place,
    env: NodeJS.ProcessEnv,
  ) {
    this.#env = env;
  }

  static async make(env: NodeJS.ProcessEnv): Promise<RealPlatform> {
    return new RealPlatform(await Place.make(), env);
  }

  get webUrl(): string {
    return `http://127.0.0.1:${this.place.webPort}`;
  }

  get backendUrl(): string {
    return `http://127.0.0.1:${this.place.backendPort}`;
  }

  /**
   * Starts the platform and waits until it reports that it runs.
   *
   * @param env more variables for this start.
   */
  async start(env: NodeJS.ProcessEnv = {}): Promise<Launcher> {
    this.#launcher = this.place.start({
      ENCRYPTION_KEY: this.#encryptionKey.toString('base64'),
      INTERNAL_API_KEY: this.internalApiKey,
      ...agentPlaces(),
      AGENT_HOST_CAPACITY: '100',
      ...this.#env,
      ...env,
    });
    await this.#launcher.printed(RUNNING, 180_000);
    return this.#launcher;
  }

  /** The output so far, shown when a test fails. */
  get output(): string {
    return this.#launcher?.output ?? '';
  }

  /** Runs a query as the database's superuser, for whom no row is hidden. */
  async query<T extends pg.QueryResultRow>(text: string, values: unknown[] = []): Promise<T[]> {
    const read = (file: string): Record<string, string | number> =>
      JSON.parse(readFileSync(path.join(this.place.dataDir, file), 'utf8'));
    const client = new pg.Client({
      host: '127.0.0.1',
      port: Number(read('ports.json').postgres),
      user: 'postgres',
      password: String(read('secrets.json').postgresPassword),
      database: 'agent_platform',
      connectionTimeoutMillis: 3_000,
      query_timeout: 5_000,
    });
    client.on('error', () => undefined); // reported by the query as well
    try {
      await client.connect();
      return (await client.query<T>(text, values)).rows;
    } finally {
      await client.end().catch(() => undefined);
    }
  }

  /** Runs work with a client of the platform's Temporal server. */
  async withTemporal<T>(work: (client: Client) => Promise<T>): Promise<T> {
    const ports = JSON.parse(readFileSync(path.join(this.place.dataDir, 'ports.json'), 'utf8'));
    const connection = await Connection.connect({ address: `127.0.0.1:${ports.temporal}` });
    try {
      return await work(new Client({ connection }));
    } finally {
      await connection.close();
    }
  }

  /** Returns all that the installation, or one of its agents, has on the engine. */
  remains(agentId?: string): Promise<Remains> {
    return remainsOf(this.docker, this.installation, agentId);
  }

  /** Stops the platform and removes the remains of its agents. */
  async close(): Promise<void> {
    await this.place.close();
    await removeRemains(this.docker, this.installation);
  }

  /** Installation id, derived as in the product: another encryption key is another installation. */
  get installation(): string {
    const hash = createHash('sha256').update('installation').update(this.#encryptionKey);
    return hash.digest('hex').slice(0, 16);
  }
}
