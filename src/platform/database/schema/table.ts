import {
  DataTypes,
  type DataType,
  type IndexesOptions,
  type Model,
  type ModelAttributeColumnOptions,
  type ModelAttributes,
  type ModelStatic,
  type Sequelize,
} from 'sequelize';
import type { Policy } from './policies.js';

/** A column's storage options and, in its type only, its value type. */
export interface Column<Value, Needed extends boolean = boolean> {
  readonly stored: ModelAttributeColumnOptions;
  /** True if a new row must include the column. */
  readonly needed: Needed;
  /** Set if Sequelize fills the column, at a row's creation or at each change. */
  readonly stamped?: 'created' | 'updated';
  /** Never set; carries the value type. */
  readonly value?: Value;
}

function column<Value>(type: DataType): Column<Value, true> {
  return { stored: { type, allowNull: false }, needed: true };
}

export const text = <Value extends string = string>() => column<Value>(DataTypes.TEXT);
export const varchar = (length: number) => column<string>(DataTypes.STRING(length));
export const uuid = () => column<string>(DataTypes.UUID);
export const boolean = () => column<boolean>(DataTypes.BOOLEAN);
export const integer = () => column<number>(DataTypes.INTEGER);
export const double = () => column<number>(DataTypes.DOUBLE);
/** A string in JavaScript, whose numbers lose precision beyond 2^53. */
export const bigint = () => column<string>(DataTypes.BIGINT);
/** A string in JavaScript, whose numbers cannot represent decimal fractions exactly. */
export const decimal = (digits: number, scale: number) =>
  column<string>(DataTypes.DECIMAL(digits, scale));
/** A date as `YYYY-MM-DD`. */
export const date = () => column<string>(DataTypes.DATEONLY);
export const timestamp = () => column<Date>(DataTypes.DATE);
export const json = <Value>() => column<Value>(DataTypes.JSONB);

export const texts = <Value extends string = string>() =>
  column<readonly Value[]>(DataTypes.ARRAY(DataTypes.TEXT));

/** A number that the table increments. */
export const serial = (): Column<string, false> => ({
  stored: { type: DataTypes.BIGINT, allowNull: false, autoIncrement: true },
  needed: false,
});

/** A time column that Sequelize sets when the row is created. */
export const created = (): Column<Date, false> => ({
  ...timestamp(),
  needed: false,
  stamped: 'created',
});

/** A time column that Sequelize sets at each change of the row. */
export const updated = (): Column<Date, false> => ({
  ...timestamp(),
  needed: false,
  stamped: 'updated',
});

/** Marks a column of the primary key. */
export function key<Value, Needed extends boolean>(
  of: Column<Value, Needed>,
): Column<Value, Needed> {
  return { ...of, stored: { ...of.stored, primaryKey: true } };
}

export function nullable<Value>(of: Column<Value>): Column<Value | null, false> {
  return { stored: { ...of.stored, allowNull: true }, needed: false };
}

export function withDefault<Value>(
  of: Column<Value>,
  defaultValue: NoInfer<Value> | ReturnType<typeof Sequelize.literal>,
): Column<Value, false> {
  return { stored: { ...of.stored, defaultValue }, needed: false };
}

type Columns = Readonly<Record<string, Column<unknown>>>;

/** A table as created by the migrations: row types, model, and the data of the schema test. */
export interface Table<Of extends Columns = Columns> {
  readonly name: string;
  readonly columns: Of;
  readonly indexes: readonly IndexesOptions[];
  readonly policy: Policy;
}

/** A row of a table, as plain attributes. */
export type RowOf<T extends Table> = {
  -readonly [Name in keyof T['columns']]: T['columns'][Name] extends Column<infer Value>
    ? Value
    : never;
};

/** The attributes of a new row; optional ones may be missing. */
export type NewRowOf<T extends Table> = {
  [
    Name in keyof T['columns'] as T['columns'][Name]['needed'] extends true ? Name : never
  ]: RowOf<T>[Name];
} & {
  [
    Name in keyof T['columns'] as T['columns'][Name]['needed'] extends true ? never : Name
  ]?: RowOf<T>[Name];
};

/** Declares a table. Column names are camel case here, and snake case in the database. */
export function table<Of extends Columns>(
  name: string,
  columns: Of,
  indexes: readonly IndexesOptions[],
  policy: Policy,
): Table<Of> {
  return { name, columns, indexes, policy };
}

type Fields = NonNullable<IndexesOptions['fields']>;

/** Declares an index; with `where`, over the matching rows only. */
export const index = (
  name: string,
  fields: Fields,
  where?: IndexesOptions['where'],
): IndexesOptions => ({ name, fields, ...(where && { where }) });

export const unique = (...parameters: Parameters<typeof index>): IndexesOptions => ({
  ...index(...parameters),
  unique: true,
});

export type ModelOf<T extends Table> = ModelStatic<Model<RowOf<T>, NewRowOf<T>>>;

export function defineTable<T extends Table>(
  sequelize: Sequelize,
  name: string,
  table: T,
): ModelOf<T> {
  const columns = Object.entries(table.columns);
  const attributes = Object.fromEntries(columns.map(([name, { stored }]) => [name, { ...stored }]));
  const stampedBy = (stamp: Column<unknown>['stamped']) =>
    columns.find(([, { stamped }]) => stamped === stamp)?.[0] ?? false;
  const [createdAt, updatedAt] = [stampedBy('created'), stampedBy('updated')];
  return sequelize.define<Model<RowOf<T>, NewRowOf<T>>>(
    name,
    attributes as ModelAttributes<Model<RowOf<T>, NewRowOf<T>>>,
    {
      tableName: table.name,
      indexes: table.indexes,
      timestamps: createdAt !== false || updatedAt !== false,
      createdAt,
      updatedAt,
    },
  );
}

/** Returns `SELECT ... FROM` for a table, with all columns under their names in code. */
export function selectFrom({ name, columns }: Table): string {
  const listed = Object.keys(columns).map((column) => `${inSnakeCase(column)} AS "${column}"`);
  return `SELECT ${listed.join(', ')} FROM ${name}`;
}

/** Name of a column in the database. */
export const inSnakeCase = (name: string) =>
  name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
