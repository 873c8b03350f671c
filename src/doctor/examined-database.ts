import { DatabaseError } from 'sequelize';
import { reasonOf } from '../lib/reason-of.js';
import { Database } from '../platform/database/database.js';
import { isDatabaseAway } from '../platform/database/database-away.js';
import { databaseSettings } from '../platform/database/settings.js';
import { checkRole, checkSchema, UnfitDatabaseError } from '../platform/database/start-check.js';
import { readAreas, type Environment } from '../platform/environment/read.js';
import { SettingsError } from '../platform/environment/settings-error.js';
import { failure, NO_SETTINGS, ok, warning, type Check, type Finding } from './check.js';

/** Connections, enough for the checks that run at the same time. */
const CONNECTIONS = 4;

/** The database that several checks share, so that an unreachable database is reported once. */
export class ExaminedDatabase {
  readonly #opened: { readonly database: Database; readonly place: string } | undefined;
  readonly #state: Promise<'usable' | 'away' | 'unfit'>;
  #findings: readonly Finding[] = [];

  constructor(env: Environment) {
    this.#opened = open(env);
    this.#state = this.#examine();
  }

  /** Connection, role and schema. */
  readonly check: Check = {
    name: 'database',
    run: async () => {
      await this.#state;
      return this.#findings;
    },
  };

  /** Makes a check that reads tables. */
  checkOf(
    name: string,
    run: (database: Database, env: Environment) => Promise<readonly Finding[]>,
  ): Check {
    return {
      name,
      run: async (env) => {
        if (!this.#opened) return [NO_SETTINGS];
        switch (await this.#state) {
          case 'away':
            return [warning('Not checked: the database does not answer.')];
          case 'unfit':
            return [warning('Not checked: the schema is not of this release.')];
          case 'usable':
            return run(this.#opened.database, env);
        }
      },
    };
  }

  async close(): Promise<void> {
    await this.#opened?.database.close();
  }

  async #examine(): Promise<'usable' | 'away' | 'unfit'> {
    if (!this.#opened) {
      this.#findings = [NO_SETTINGS];
      return 'away';
    }
    const { database, place } = this.#opened;
    try {
      await database.call({ text: 'SELECT 1' }, []);
    } catch (error) {
      this.#findings = [unreachable(place, error)];
      return 'away';
    }
    const role = await findingsOf(async () => {
      await checkRole(database);
      return [ok(`PostgreSQL answers at ${place}, and the role keeps tenants apart.`)];
    });
    const schema = await findingsOf(async () => {
      const newer = await checkSchema(database);
      if (newer.length === 0) return [ok('The schema is of this release.')];
      return [
        warning(`The schema is of a newer release (${newer.join(', ')}): start that release soon.`),
      ];
    });
    this.#findings = [...role, ...schema];
    return schema.some(({ status }) => status === 'failure') ? 'unfit' : 'usable';
  }
}

/** Opens the database of the settings; undefined if they are wrong. */
function open(env: Environment) {
  try {
    const { url } = readAreas({ database: databaseSettings }, env).database;
    const place = new URL(url).host || 'its socket';
    return { database: new Database(url, { maxConnections: CONNECTIONS }), place };
  } catch (error) {
    if (error instanceof SettingsError) return undefined;
    throw error;
  }
}

function unreachable(place: string, error: unknown): Finding {
  const reason = reasonOf(error);
  return failure(
    isDatabaseAway(error) || !(error instanceof DatabaseError)
      ? `PostgreSQL does not answer at ${place} (${reason}): start it, or correct DATABASE_URL.`
      : `PostgreSQL at ${place} refuses the connection (${reason}): correct DATABASE_URL.`,
  );
}

async function findingsOf(work: () => Promise<readonly Finding[]>): Promise<readonly Finding[]> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof UnfitDatabaseError) return [failure(`${error.message}.`)];
    return [failure(`PostgreSQL refuses the check: ${reasonOf(error)}.`)];
  }
}
