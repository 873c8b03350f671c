import type {
  CountOptions,
  CreationAttributes,
  FindOptions,
  Model,
  ModelStatic,
  Transaction,
  UpdateOptions,
  WhereOptions,
} from 'sequelize';
import type { NewRowOf, RowOf, Table } from './schema/table.js';

/** Query options; `attributes` selects columns, default: all. */
type Find<Row, Name> = Pick<FindOptions<Row>, 'where' | 'order' | 'limit' | 'offset' | 'lock'> & {
  readonly attributes?: readonly Name[];
};

/** A table within a tenant's transaction, without which no rows are visible. Rows are plain attributes. */
export class TenantTable<Of extends Table, Row extends object = RowOf<Of>> {
  readonly #model: ModelStatic<Model<Row, NewRowOf<Of>>>;
  readonly #transaction: Transaction;

  constructor(model: ModelStatic<Model<Row, NewRowOf<Of>>>, transaction: Transaction) {
    this.#model = model;
    this.#transaction = transaction;
  }

  async findAll<Name extends keyof Row & string = keyof Row & string>({
    attributes,
    ...options
  }: Find<Row, Name> = {}): Promise<Pick<Row, Name>[]> {
    // The library's types do not cover the rows that `raw` returns.
    const rows: unknown = await this.#model.findAll({
      ...options,
      ...(attributes && { attributes: [...attributes] }),
      raw: true,
      transaction: this.#transaction,
    });
    return rows as Pick<Row, Name>[];
  }

  async findOne<Name extends keyof Row & string = keyof Row & string>(
    options: Find<Row, Name>,
  ): Promise<Pick<Row, Name> | null> {
    const [row] = await this.findAll({ ...options, limit: 1 });
    return row ?? null;
  }

  /** Finds a row by a primary key of one column. */
  findByPk<Name extends keyof Row & string = keyof Row & string>(
    key: string,
    options: Pick<Find<Row, Name>, 'lock' | 'attributes'> = {},
  ): Promise<Pick<Row, Name> | null> {
    const where = { [this.#model.primaryKeyAttribute]: key } as WhereOptions<Row>;
    return this.findOne({ ...options, where });
  }

  /** Returns the row with the key, like `findByPk`, but throws if it is missing. */
  async getByPk(key: string, options: Pick<Find<Row, never>, 'lock'> = {}): Promise<Row> {
    const row = await this.findByPk(key, options);
    if (!row) throw new RangeError(`${this.#model.name} ${key} does not exist`);
    return row as Row;
  }

  count(options: Pick<CountOptions<Row>, 'where'> = {}): Promise<number> {
    return this.#model.count({ ...options, transaction: this.#transaction });
  }

  async create(values: NewRowOf<Of>): Promise<Row> {
    const row = await this.#model.create(values as Creation<Of, Row>, {
      transaction: this.#transaction,
    });
    return row.get({ plain: true });
  }

  async bulkCreate(
    rows: readonly NewRowOf<Of>[],
    options: { readonly ignoreDuplicates?: boolean } = {},
  ): Promise<void> {
    await this.#model.bulkCreate(rows as readonly Creation<Of, Row>[], {
      ...options,
      transaction: this.#transaction,
    });
  }

  /** Inserts a row, or updates the row with the same primary key. */
  async upsert(values: NewRowOf<Of>): Promise<void> {
    await this.#model.upsert(values as Creation<Of, Row>, { transaction: this.#transaction });
  }

  /** Updates all matching rows, and returns their number. */
  async update(values: Partial<Row>, options: Pick<UpdateOptions<Row>, 'where'>): Promise<number> {
    const transaction = this.#transaction;
    const [changed] = await this.#model.update(values, { ...options, transaction });
    return changed;
  }

  /** Removes all matching rows, and returns their number. */
  destroy(options: {
    readonly where: WhereOptions<Row>;
    readonly limit?: number;
  }): Promise<number> {
    return this.#model.destroy({ ...options, transaction: this.#transaction });
  }
}

/** A new row in the library's types. */
type Creation<Of extends Table, Row extends object> = CreationAttributes<Model<Row, NewRowOf<Of>>>;
