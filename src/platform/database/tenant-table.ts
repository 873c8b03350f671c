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

/** What is sought, and of it the columns `Name`: all, when none are named. */
type Find<Row, Name> = Pick<FindOptions<Row>, 'where' | 'order' | 'limit' | 'offset' | 'lock'> & {
  readonly attributes?: readonly Name[];
};

/**
 * One table within one transaction of a tenant: no statement can be sent beside it, where it would
 * see nothing. Rows are plain attributes.
 */
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
    // What `raw` makes of rows is not in the library's types.
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

  /** By a primary key of one column. */
  findByPk<Name extends keyof Row & string = keyof Row & string>(
    key: string,
    options: Pick<Find<Row, Name>, 'lock' | 'attributes'> = {},
  ): Promise<Pick<Row, Name> | null> {
    const where = { [this.#model.primaryKeyAttribute]: key } as WhereOptions<Row>;
    return this.findOne({ ...options, where });
  }

  /** Like `findByPk`, of a row that must be there. */
  async getByPk(key: string, options: Pick<Find<Row, never>, 'lock'> = {}): Promise<Row> {
    const row = await this.findByPk(key, options);
    if (!row) throw new RangeError(`${this.#model.name} ${key} is not there`);
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

  /** Makes a row, or sets the values in the one that has its primary key. */
  async upsert(values: NewRowOf<Of>): Promise<void> {
    await this.#model.upsert(values as Creation<Of, Row>, { transaction: this.#transaction });
  }

  /** Sets the values in every such row. Answers how many there were. */
  async update(values: Partial<Row>, options: Pick<UpdateOptions<Row>, 'where'>): Promise<number> {
    const transaction = this.#transaction;
    const [changed] = await this.#model.update(values, { ...options, transaction });
    return changed;
  }

  /** Answers how many there were. */
  destroy(options: {
    readonly where: WhereOptions<Row>;
    readonly limit?: number;
  }): Promise<number> {
    return this.#model.destroy({ ...options, transaction: this.#transaction });
  }
}

/** A new row, as the library's types name it. */
type Creation<Of extends Table, Row extends object> = CreationAttributes<Model<Row, NewRowOf<Of>>>;
