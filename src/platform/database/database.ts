import pg from 'pg';
import { ConnectionError, DatabaseError, QueryTypes, Sequelize, type Transaction } from 'sequelize';
import { defineModels, type Models, type Tables } from './models.js';
import { NamedValues, withoutNul } from './named-values.js';
import { RowChanges, type TableChanges, type ToldTable } from './row-changes.js';
import { TenantTable } from './tenant-table.js';

/** Connections of each pool of one process unless it asks for another number. */
const DEFAULT_MAX_CONNECTIONS = 10;

/** Bounds in milliseconds: nothing that talks to the database waits for ever. */
const CONNECT_TIMEOUT_MS = 5_000;
const ACQUIRE_TIMEOUT_MS = 10_000;
const IDLE_CONNECTION_MS = 60_000;
const STATEMENT_TIMEOUT_MS = 15_000;
/** The server's own bound does not help where nothing comes from it any more. */
export const ANSWER_TIMEOUT_MS = STATEMENT_TIMEOUT_MS + 2_000;
const LOCK_TIMEOUT_MS = 5_000;
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 30_000;

/** By their names in a statement, where they stand as `$name`. */
export type Values = Readonly<Record<string, unknown>>;

/** What runs SQL as a tenant. */
export interface Statements {
  /** Whose rows; undefined for the platform. To be named in lists: the policy alone uses no index. */
  readonly userId: string | undefined;
  /** Runs one statement; answers the rows that it returns. */
  query<Row extends object>(sql: string, values?: Values): Promise<Row[]>;
}

/** One transaction, and the tables within it: all that it does is the tenant's. */
export type TenantTransaction = Statements & {
  readonly [Name in keyof Tables]: TenantTable<Tables[Name]>;
} & {
  /** Waits for the lock of that name, and holds it until the transaction ends. */
  lock(name: string): Promise<void>;
};

/** Statements of one transaction, which may be sent without waiting for each other's answers. */
export type TransactionStatements = Statements & Pick<TenantTransaction, 'lock'>;

/** The database as one tenant, or the platform, sees it. */
export interface TenantDatabase extends Statements {
  /**
   * Runs one statement, in one round trip; answers the rows that it returns. `plan: 'anew'` is for
   * what takes longer than planning it, by a way that depends on the values.
   */
  query<Row extends object>(
    sql: string,
    values?: Values,
    options?: { readonly plan?: 'kept' | 'anew' },
  ): Promise<Row[]>;

  /**
   * Runs `work` in one transaction whose rows are the tenant's; commits what it returns, rolls
   * back when it throws.
   */
  transaction<T>(work: (db: TenantTransaction) => Promise<T>): Promise<T>;

  /** The same for SQL alone, in fewer round trips: the transaction begins with its first statement. */
  statements<T>(work: (db: TransactionStatements) => Promise<T>): Promise<T>;
}

/** A statement outside of all tenants. */
export interface FunctionCall {
  /** Prepared under it, once for each connection. */
  readonly name?: string;
  readonly text: string;
}

/** The serving role's connections: Sequelize's, for transactions, and a pool for single statements. */
export class Database {
  readonly #sequelize: Sequelize;
  readonly #models: Models;
  readonly #pool: pg.Pool;
  readonly #namedValues = new NamedValues();
  readonly #changes: RowChanges;

  /**
   * @param options `answerTimeoutMs`: 0 where statements may take longer than the server lets them
   *   by itself.
   */
  constructor(url: string, options: { maxConnections?: number; answerTimeoutMs?: number } = {}) {
    const max = options.maxConnections ?? DEFAULT_MAX_CONNECTIONS;
    const connection = {
      application_name: 'agent-platform-service',
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      statement_timeout: STATEMENT_TIMEOUT_MS,
      query_timeout: options.answerTimeoutMs ?? ANSWER_TIMEOUT_MS,
      lock_timeout: LOCK_TIMEOUT_MS,
      idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_TIMEOUT_MS,
      keepAlive: true,
    };
    this.#sequelize = new Sequelize(url, {
      dialect: 'postgres',
      logging: false,
      define: { underscored: true },
      pool: { max, min: 0, acquire: ACQUIRE_TIMEOUT_MS, idle: IDLE_CONNECTION_MS },
      dialectOptions: connection,
    });
    this.#models = defineModels(this.#sequelize);
    this.#changes = new RowChanges(url);
    this.#pool = new pg.Pool({
      ...connection,
      connectionString: url,
      max,
      idleTimeoutMillis: IDLE_CONNECTION_MS,
      options: '-c TimeZone=UTC',
      // Statements that are sent without waiting for each other's answers take one round trip.
      pipeline: true,
    });
    // An idle connection that breaks is replaced by the pool; a busy one fails its statement. Both
    // say so as events as well, and one that nobody listens to would end the process.
    this.#pool.on('error', () => undefined);
    this.#pool.on('connect', (client) => client.on('error', () => undefined));
  }

  /** The rows of one user. An id that no user has is no error: it owns no rows. */
  asUser(userId: string): TenantDatabase {
    return this.#asTenant(userId);
  }

  /** All rows: for the platform's own work across tenants, never on behalf of a user. */
  asPlatform(): TenantDatabase {
    return this.#asTenant(undefined);
  }

  /**
   * Calls a function that looks behind the policies: no other statement sees any row here. For what
   * every request or AI call waits for, since it takes one statement and nothing around it.
   */
  async call<Row extends object>(
    statement: FunctionCall,
    values: readonly unknown[],
  ): Promise<Row[]> {
    try {
      return (await this.#pool.query<Row>({ ...statement, values: [...values] })).rows;
    } catch (error) {
      throw named(error);
    }
  }

  /** Asks the server one trivial question; rejects when it does not answer in time. */
  async ping(): Promise<void> {
    await this.#pool.query('SELECT 1');
  }

  /** What is heard of a table from here on, on a connection that all who ask for it share. */
  changesOf(table: ToldTable): TableChanges {
    return this.#changes.of(table);
  }

  async close(): Promise<void> {
    await Promise.all([this.#sequelize.close(), this.#pool.end(), this.#changes.close()]);
  }

  #asTenant(userId: string | undefined): TenantDatabase {
    return {
      userId,
      transaction: (work) =>
        this.#sequelize.transaction(async (transaction) => {
          const [text, bind] = [SET_TENANT.text, settingsOf(userId)];
          await this.#sequelize.query(text, { bind, transaction });
          return work(this.#within(transaction, userId));
        }),
      statements: (work) => this.#statements(userId, work),
      query: (sql, values = {}, { plan = 'kept' } = {}) => {
        const statement = this.#namedValues.statement(sql, values);
        return this.#query(userId, plan === 'kept' ? statement : { ...statement, name: undefined });
      },
    };
  }

  /**
   * A transaction of four statements, sent together: whatever the server refuses, it answers all of
   * them, and the last one ends the transaction. So the connection is as it was when it goes back.
   */
  async #query<Row extends object>(
    userId: string | undefined,
    statement: pg.QueryConfig,
  ): Promise<Row[]> {
    const client = await this.#connection();
    const answers = await Promise.allSettled([
      client.query('BEGIN'),
      client.query(SET_TENANT, settingsOf(userId)),
      client.query<Row>(statement),
      client.query('COMMIT'),
    ]);
    const [error] = answers.flatMap((answer) =>
      answer.status === 'rejected' ? [answer.reason as unknown] : [],
    );
    // Only what the server itself has refused leaves a connection that can be used again.
    client.release(error !== undefined && !(error instanceof pg.DatabaseError));
    const [, , answer] = answers;
    if (error !== undefined || answer.status === 'rejected') throw named(error);
    return answer.value.rows;
  }

  /** What begins the transaction is sent with its first statement, and answered with it. */
  async #statements<T>(
    userId: string | undefined,
    work: (db: TransactionStatements) => Promise<T>,
  ): Promise<T> {
    const client = await this.#connection();
    const sent: Promise<unknown>[] = [];
    const send = <Row extends object>(statement: pg.QueryConfig) => {
      const answer = client.query<Row>(statement);
      answer.catch(() => undefined); // it is heard of in the end, by whoever waits for it or not
      sent.push(answer);
      return answer;
    };
    const query = async <Row extends object>(sql: string, values: Values = {}): Promise<Row[]> => {
      try {
        return (await send<Row>(this.#namedValues.statement(sql, values))).rows;
      } catch (error) {
        throw named(error);
      }
    };
    const lock = async (name: string) => void (await query(LOCK, { name }));
    let isOver = false;
    try {
      void send({ text: 'BEGIN' });
      void send({ ...SET_TENANT, values: settingsOf(userId) });
      const result = await work({ userId, query, lock });
      const { command } = await send({ text: 'COMMIT' });
      isOver = true;
      // Of a transaction in which a statement was refused that nobody waited for, nothing is kept.
      if (command !== 'COMMIT')
        throw new DatabaseError(Object.assign(new Error(command), { sql: '' }));
      return result;
    } finally {
      if (!isOver) void send({ text: 'ROLLBACK' });
      const ends = await Promise.allSettled(sent);
      client.release(
        ends.some((end) => end.status === 'rejected' && !(end.reason instanceof pg.DatabaseError)),
      );
    }
  }

  #connection(): Promise<pg.PoolClient> {
    return this.#pool.connect().catch((error: unknown) => {
      throw named(error);
    });
  }

  #within(transaction: Transaction, userId: string | undefined): TenantTransaction {
    const sequelize = this.#sequelize;
    const query = <Row extends object>(sql: string, values: Values = {}): Promise<Row[]> =>
      sequelize.query<Row>(sql, { type: QueryTypes.SELECT, bind: values, transaction });
    const tables = Object.entries(this.#models).map(([name, model]) => [
      name,
      new TenantTable(model, transaction),
    ]);
    return {
      ...(Object.fromEntries(tables) as { [Name in keyof Tables]: TenantTable<Tables[Name]> }),
      userId,
      query,
      async lock(name) {
        await query(LOCK, { name });
      },
    };
  }
}

/** Sequelize's name for a failure of the driver: callers know one kind, however a statement is sent. */
function named(error: unknown): unknown {
  if (error instanceof pg.DatabaseError)
    return new DatabaseError(Object.assign(error, { sql: '' }));
  return error instanceof Error ? new ConnectionError(error) : error;
}

/** Settings of the transaction alone, by which the policies know whose rows it may see. */
const SET_TENANT = {
  name: 'set_tenant',
  text: `SELECT set_config('app.user_id', $1, true), set_config('app.platform', $2, true)`,
};

const LOCK = 'SELECT pg_advisory_xact_lock(hashtext($name))';

const settingsOf = (userId: string | undefined) =>
  [userId ?? '', userId === undefined ? 'on' : 'off'].map(withoutNul);
