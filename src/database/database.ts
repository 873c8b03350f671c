import pg from 'pg';
import { QueryTypes, Sequelize, type Transaction, type TransactionOptions } from 'sequelize';
import { defineModels, type Models } from './models.js';

/** Connections of one process unless it asks for another number. */
const DEFAULT_MAX_CONNECTIONS = 10;

/** Bounds in milliseconds: nothing that talks to the database waits for ever. */
const CONNECT_TIMEOUT_MS = 5_000;
const ACQUIRE_TIMEOUT_MS = 10_000;
const IDLE_CONNECTION_MS = 60_000;
const STATEMENT_TIMEOUT_MS = 15_000;
/** The server's own bound does not help where nothing comes from it any more. */
const ANSWER_TIMEOUT_MS = STATEMENT_TIMEOUT_MS + 2_000;
const LOCK_TIMEOUT_MS = 5_000;
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 30_000;

/** The database as one tenant, or the platform, sees it. */
export interface TenantDatabase {
  readonly models: Models;
  /** Whose rows; undefined for the platform. To be named in lists: the policy alone uses no index. */
  readonly userId: string | undefined;
  /**
   * Runs `work` in one transaction whose rows are the tenant's; commits what it returns, rolls
   * back when it throws. Queries must be given the transaction: without it they see no rows.
   */
  transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T>;
  /**
   * What one SELECT finds of the tenant's rows, in one round trip where a transaction takes three.
   *
   * @param values by their names in it, where they stand as `:name`.
   */
  select<Row extends object>(
    sql: string,
    values: Readonly<Record<string, unknown>>,
  ): Promise<Row[]>;
}

/** The connection pool of the serving role, and the models on it. */
export class Database {
  readonly sequelize: Sequelize;
  readonly models: Models;

  /**
   * @param options `answerTimeoutMs`: 0 where statements may take longer than the server lets them
   *   by itself.
   */
  constructor(url: string, options: { maxConnections?: number; answerTimeoutMs?: number } = {}) {
    this.sequelize = new Sequelize(url, {
      dialect: 'postgres',
      logging: false,
      define: { underscored: true },
      pool: {
        max: options.maxConnections ?? DEFAULT_MAX_CONNECTIONS,
        min: 0,
        acquire: ACQUIRE_TIMEOUT_MS,
        idle: IDLE_CONNECTION_MS,
      },
      dialectOptions: {
        application_name: 'agent-platform-service',
        connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
        statement_timeout: STATEMENT_TIMEOUT_MS,
        query_timeout: options.answerTimeoutMs ?? ANSWER_TIMEOUT_MS,
        lock_timeout: LOCK_TIMEOUT_MS,
        idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_TIMEOUT_MS,
        keepAlive: true,
      },
    });
    beginTransactionsWithTenant(this.sequelize);
    this.models = defineModels(this.sequelize);
  }

  /** The rows of one user. An id that no user has is no error: it owns no rows. */
  asUser(userId: string): TenantDatabase {
    return this.asTenant(userId);
  }

  /** All rows: for the platform's own work across tenants, never on behalf of a user. */
  asPlatform(): TenantDatabase {
    return this.asTenant(undefined);
  }

  /**
   * Runs one statement by itself, on a connection of the pool but past Sequelize's own layers, which
   * cost three times what the driver does: for what every request or AI call waits for. It sees no
   * tenant's rows, and so is for functions that look behind the policies.
   *
   * @param statement prepared under its name, once for each connection.
   */
  async callFunction<Row extends object>(
    statement: { readonly name: string; readonly text: string },
    values: readonly unknown[],
  ): Promise<Row[]> {
    const { connectionManager } = this.sequelize;
    // A connection of this dialect is the driver's client.
    const client = (await connectionManager.getConnection({ type: 'write' })) as pg.ClientBase;
    try {
      const { rows } = await client.query<Row>({ ...statement, values: [...values] });
      connectionManager.releaseConnection(client);
      return rows;
    } catch (error) {
      // Only what the server itself has refused leaves a connection that can be used again.
      if (error instanceof pg.DatabaseError) connectionManager.releaseConnection(client);
      else await connectionManager.destroyConnection(client);
      throw error;
    }
  }

  /** Asks the server one trivial question; rejects when it does not answer in time. */
  async ping(): Promise<void> {
    await this.sequelize.query('SELECT 1', { type: QueryTypes.SELECT });
  }

  async close(): Promise<void> {
    await this.sequelize.close();
  }

  private asTenant(userId: string | undefined): TenantDatabase {
    const { sequelize, models } = this;
    const options: TenantTransactionOptions = {
      tenantSql: tenantSql(sequelize.escape(userId ?? ''), userId),
    };
    const named = tenantSql(':tenantId', userId);
    return {
      models,
      userId,
      transaction: (work) => sequelize.transaction(options, work),
      async select<Row extends object>(sql: string, values: Readonly<Record<string, unknown>>) {
        // Statements that are sent together are one transaction. The first one finds one row.
        const [, ...rows] = await sequelize.query<Row>(named + sql, {
          type: QueryTypes.SELECT,
          replacements: { ...values, tenantId: userId ?? '' },
        });
        return rows;
      },
    };
  }
}

interface TenantTransactionOptions extends TransactionOptions {
  /** Sets the tenant for the transaction that it is sent with. */
  readonly tenantSql: string;
}

/** @param idSql stands for the user's id; without a user the platform is meant. */
function tenantSql(idSql: string, userId: string | undefined): string {
  return (
    `SELECT set_config('app.user_id', ${idSql}, true),` +
    ` set_config('app.platform', '${userId === undefined ? 'on' : 'off'}', true);`
  );
}

/**
 * Makes a transaction take its tenant in the round trip that begins it: one less in every request.
 * The two statements travel as one simple query.
 */
function beginTransactionsWithTenant(sequelize: Sequelize): void {
  // Sequelize leaves its generator untyped; this is the part of it that begins a transaction.
  const generator = sequelize.getQueryInterface().queryGenerator as {
    startTransactionQuery(tx: { parent?: Transaction; options: { tenantSql?: string } }): string;
  };
  const begin = generator.startTransactionQuery.bind(generator);
  generator.startTransactionQuery = (tx) =>
    tx.parent ? begin(tx) : begin(tx) + (tx.options.tenantSql ?? '');
}
