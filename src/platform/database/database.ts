import pg from 'pg';
import { ConnectionError, DatabaseError, QueryTypes, Sequelize, type Transaction } from 'sequelize';
import { defineModels, type Models, type Tables } from './models.js';
import { NamedValues, withoutNul } from './named-values.js';
import { RowChanges, type TableChanges, type AnnouncedTable } from './row-changes.js';
import { TenantTable } from './tenant-table.js';

/** Default connections of each pool of a process. */
const DEFAULT_MAX_CONNECTIONS = 10;

/** Limits in milliseconds: no call to the database waits forever. */
const CONNECT_TIMEOUT_MS = 5_000;
const ACQUIRE_TIMEOUT_MS = 10_000;
const IDLE_CONNECTION_MS = 60_000;
const STATEMENT_TIMEOUT_MS = 15_000;
/** Needed because the server's own limit has no effect when its answers no longer arrive. */
export const ANSWER_TIMEOUT_MS = STATEMENT_TIMEOUT_MS + 2_000;
const LOCK_TIMEOUT_MS = 5_000;
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 30_000;

/** Values by name; a statement refers to each as `$name`. */
export type Values = Readonly<Record<string, unknown>>;

export interface Statements {
  /** The tenant's user id; undefined for the platform. Lists filter by it: the policy by itself uses no index. */
  readonly userId: string | undefined;
  query<Row extends object>(sql: string, values?: Values): Promise<Row[]>;
}

/** One transaction and its tables, limited to the tenant's rows. */
export type TenantTransaction = Statements & {
  readonly [Name in keyof Tables]: TenantTable<Tables[Name]>;
} & {
  /** Waits for the lock of this name, and holds it until the transaction ends. */
  lock(name: string): Promise<void>;
};

/** Statements of one transaction, which may be sent without waiting for previous answers. */
export type TransactionStatements = Statements & Pick<TenantTransaction, 'lock'>;

/** The database as seen by one tenant or the platform. */
export interface TenantDatabase extends Statements {
  /**
   * Runs one statement in one round trip and returns its rows. `plan: 'fresh'` plans the statement
   * at each call, for a slow statement whose best plan depends on the values.
   */
  query<Row extends object>(
    sql: string,
    values?: Values,
    options?: { readonly plan?: 'cached' | 'fresh' },
  ): Promise<Row[]>;

  /** Runs `work` in a transaction over the tenant's rows, rolled back when `work` throws. */
  transaction<T>(work: (db: TenantTransaction) => Promise<T>): Promise<T>;

  /** Runs SQL statements in a transaction with fewer round trips: BEGIN is sent with the first statement. */
  statements<T>(work: (db: TransactionStatements) => Promise<T>): Promise<T>;
}

/** Use of a pool of connections. */
export interface PoolUse {
  readonly busy: number;
  readonly idle: number;
  /** Callers that wait for a connection. */
  readonly waiting: number;
}

/** A statement outside of all tenants. */
export interface FunctionCall {
  /** Name of the prepared statement, prepared once for each connection. */
  readonly name?: string;
  readonly text: string;
}

/** Connections of the serving role: Sequelize's for transactions, and a pool for single statements. */
export class Database {
  readonly #sequelize: Sequelize;
  readonly #models: Models;
  readonly #pool: pg.Pool;
  readonly #namedValues = new NamedValues();
  readonly #changes: RowChanges;

  /** @param options `answerTimeoutMs`: 0 if statements may exceed the server's default limit. */
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
      // Statements sent without waiting for previous answers take one round trip.
      pipeline: true,
    });
    // The pool replaces a broken idle connection; a busy one fails its statement. Both also emit an error
    // event, which would end the process without a listener.
    this.#pool.on('error', () => undefined);
    this.#pool.on('connect', (client) => client.on('error', () => undefined));
  }

  /** Returns the view of one user. An unknown id is no error: it owns no rows. */
  asUser(userId: string): TenantDatabase {
    return this.#asTenant(userId);
  }

  /** Returns the view of all rows, for the platform's own work across tenants, never on behalf of a user. */
  asPlatform(): TenantDatabase {
    return this.#asTenant(undefined);
  }

  /**
   * Calls a function that bypasses the policies; other statements see no rows here. For lookups in every
   * request or AI call, because it takes a single statement.
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

  /** Runs a trivial query; rejects if the server does not answer in time. */
  async ping(): Promise<void> {
    await this.#pool.query('SELECT 1');
  }

  /** Returns the use of the pools of this process now. */
  get pools(): Readonly<Record<'statements' | 'transactions', PoolUse>> {
    const { idleCount, totalCount, waitingCount } = this.#pool;
    // Sequelize's types lack its pool.
    const { pool } = this.#sequelize.connectionManager as unknown as {
      readonly pool: {
        readonly using: number;
        readonly available: number;
        readonly waiting: number;
      };
    };
    return {
      statements: { busy: totalCount - idleCount, idle: idleCount, waiting: waitingCount },
      transactions: { busy: pool.using, idle: pool.available, waiting: pool.waiting },
    };
  }

  /** Returns the notifications of a table, which arrive on a connection shared by all callers. */
  changesOf(table: AnnouncedTable): TableChanges {
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
      query: (sql, values = {}, { plan = 'cached' } = {}) => {
        const statement = this.#namedValues.statement(sql, values);
        return this.#query(
          userId,
          plan === 'cached' ? statement : { ...statement, name: undefined },
        );
      },
    };
  }

  /**
   * Runs a transaction of four statements, sent together. The server answers all of them even after an
   * error, and the last one ends the transaction, so the connection returns to the pool clean.
   */
  async #query<Row extends object>(
    userId: string | undefined,
    statement: pg.QueryConfig,
  ): Promise<Row[]> {
    const client = await this.#connection();
    const answers = await inOneWrite(client, () =>
      Promise.allSettled([
        client.query('BEGIN'),
        client.query(SET_TENANT, settingsOf(userId)),
        client.query<Row>(statement),
        client.query('COMMIT'),
      ]),
    );
    const [error] = answers.flatMap((answer) =>
      answer.status === 'rejected' ? [answer.reason as unknown] : [],
    );
    // After an error of the server the connection is reusable; after any other error it is not.
    client.release(error !== undefined && !(error instanceof pg.DatabaseError));
    const [, , answer] = answers;
    if (error !== undefined || answer.status === 'rejected') throw named(error);
    return answer.value.rows;
  }

  /** Runs `work` in a transaction; BEGIN and the tenant's settings are sent with the first statement. */
  async #statements<T>(
    userId: string | undefined,
    work: (db: TransactionStatements) => Promise<T>,
  ): Promise<T> {
    const client = await this.#connection();
    const sent: Promise<unknown>[] = [];
    const send = <Row extends object>(statement: pg.QueryConfig) => {
      const answer = client.query<Row>(statement);
      answer.catch(() => undefined); // prevents an unhandled rejection; failures are collected at the end
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
      const result = await inOneWrite(client, () => {
        void send({ text: 'BEGIN' });
        void send({ ...SET_TENANT, values: settingsOf(userId) });
        return work({ userId, query, lock });
      });
      const { command } = await send({ text: 'COMMIT' });
      isOver = true;
      // PostgreSQL rolls back if a statement failed that `work` did not await.
      if (command !== 'COMMIT') throw new RolledBackError();
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

/** A transaction in which a statement failed that its caller did not await: a defect of the caller. */
class RolledBackError extends Error {
  override readonly name = 'RolledBackError';

  constructor() {
    super('PostgreSQL rolled the transaction back, because a statement of it failed');
  }
}

/** Sends the statements of `send` in one write: each write to a socket costs more than a statement's text. */
function inOneWrite<T>({ connection }: pg.PoolClient, send: () => T): T {
  connection.stream.cork();
  try {
    return send();
  } finally {
    connection.stream.uncork();
  }
}

/** Wraps a driver error in Sequelize's class, so that callers get one kind of error from both pools. */
function named(error: unknown): unknown {
  if (error instanceof pg.DatabaseError)
    return new DatabaseError(Object.assign(error, { sql: '' }));
  return error instanceof Error ? new ConnectionError(error) : error;
}

/** Sets the transaction's tenant, by which the policies select its rows. */
const SET_TENANT = {
  name: 'set_tenant',
  text: `SELECT set_config('app.user_id', $1, true), set_config('app.platform', $2, true)`,
};

const LOCK = 'SELECT pg_advisory_xact_lock(hashtext($name))';

const settingsOf = (userId: string | undefined) =>
  [userId ?? '', userId === undefined ? 'on' : 'off'].map(withoutNul);
