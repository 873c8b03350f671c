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

/** How a column is stored and, in its type alone, what its values are. */
export interface Column<Value, Needed extends boolean = boolean> {
  readonly stored: ModelAttributeColumnOptions;
  /** Whether whoever makes a row must name it. */
  readonly needed: Needed;
  /** Whether Sequelize sets it, when a row is made or whenever it is changed. */
  readonly stamped?: 'created' | 'updated';
  /** Never set: it carries the type. */
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
/** Text in JavaScript, whose numbers end before it. */
export const bigint = () => column<string>(DataTypes.BIGINT);
/** Text in JavaScript, whose numbers have other fractions. */
export const decimal = (digits: number, scale: number) =>
  column<string>(DataTypes.DECIMAL(digits, scale));
/** `YYYY-MM-DD` */
export const date = () => column<string>(DataTypes.DATEONLY);
export const timestamp = () => column<Date>(DataTypes.DATE);
export const json = <Value>() => column<Value>(DataTypes.JSONB);

/** Counted up by the table. */
export const serial = (): Column<string, false> => ({
  stored: { type: DataTypes.BIGINT, allowNull: false, autoIncrement: true },
  needed: false,
});

/** When the row was made. */
export const created = (): Column<Date, false> => ({
  ...timestamp(),
  needed: false,
  stamped: 'created',
});

/** When the row was last changed. */
export const updated = (): Column<Date, false> => ({
  ...timestamp(),
  needed: false,
  stamped: 'updated',
});

/** One of the columns of the primary key. */
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

/** A table as the migrations make it: its rows' type, its model, and what a test compares. */
export interface Table<Of extends Columns = Columns> {
  readonly name: string;
  readonly columns: Of;
  readonly indexes: readonly IndexesOptions[];
  /** Who sees which rows. */
  readonly policy: Policy;
}

/** What is in a row: plain attributes. */
export type RowOf<T extends Table> = {
  -readonly [Name in keyof T['columns']]: T['columns'][Name] extends Column<infer Value>
    ? Value
    : never;
};

/** What whoever makes a row says of it. */
export type NewRowOf<T extends Table> = {
  [
    Name in keyof T['columns'] as T['columns'][Name]['needed'] extends true ? Name : never
  ]: RowOf<T>[Name];
} & {
  [
    Name in keyof T['columns'] as T['columns'][Name]['needed'] extends true ? never : Name
  ]?: RowOf<T>[Name];
};

/** Columns are named in camel case here, and in snake case in the database. */
export function table<Of extends Columns>(
  name: string,
  columns: Of,
  indexes: readonly IndexesOptions[],
  policy: Policy,
): Table<Of> {
  return { name, columns, indexes, policy };
}

export type ModelOf<T extends Table> = ModelStatic<Model<RowOf<T>, NewRowOf<T>>>;

/** The model of a table on one Sequelize instance. */
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

/** `SELECT ... FROM` a table: its rows with all columns, named as they are here. */
export function selectFrom({ name, columns }: Table): string {
  const listed = Object.keys(columns).map((column) => `${inSnakeCase(column)} AS "${column}"`);
  return `SELECT ${listed.join(', ')} FROM ${name}`;
}

/** A column's name in the database. */
export const inSnakeCase = (name: string) =>
  name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
