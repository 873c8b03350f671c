import {
  DataTypes,
  literal,
  type CreationOptional,
  type InferAttributes,
  type InferCreationAttributes,
  type Model,
  type Sequelize,
} from 'sequelize';

/** The first answer to a request that carried an `Idempotency-Key`. */
export interface IdempotencyKeyRow extends Model<
  InferAttributes<IdempotencyKeyRow>,
  InferCreationAttributes<IdempotencyKeyRow>
> {
  /** Who called: a user's id, or a name for a caller that is no user. */
  caller: string;
  route: string;
  key: string;
  requestHash: string;
  state: 'running' | 'done';
  status: number | null;
  /** Any JSON: the answer's body. */
  body: unknown;
  headers: Record<string, string> | null;
  /** Until when a `running` entry is believed to be at work. */
  lockedUntil: Date;
  createdAt: CreationOptional<Date>;
}

export const defineIdempotencyKey = (sequelize: Sequelize) =>
  sequelize.define<IdempotencyKeyRow>(
    'IdempotencyKey',
    {
      caller: { type: DataTypes.TEXT, primaryKey: true },
      route: { type: DataTypes.TEXT, primaryKey: true },
      key: { type: DataTypes.TEXT, primaryKey: true },
      requestHash: { type: DataTypes.TEXT, allowNull: false },
      state: { type: DataTypes.TEXT, allowNull: false },
      status: DataTypes.INTEGER,
      body: DataTypes.JSONB,
      headers: DataTypes.JSONB,
      lockedUntil: { type: DataTypes.DATE, allowNull: false },
      createdAt: { type: DataTypes.DATE, allowNull: false },
    },
    {
      tableName: 'idempotency_keys',
      updatedAt: false,
      indexes: [{ name: 'idempotency_keys_created', fields: ['created_at'] }],
    },
  );

/** One line of the audit log. The serving role adds lines; nobody changes them. */
export interface AuditEntryRow extends Model<
  InferAttributes<AuditEntryRow>,
  InferCreationAttributes<AuditEntryRow>
> {
  /** A bigint, and so text in JavaScript. */
  id: CreationOptional<string>;
  at: CreationOptional<Date>;
  actor: string;
  /** Whose data it is about; null for the platform's own. */
  userId: string | null;
  action: string;
  subject: string;
  detail: CreationOptional<Record<string, unknown>>;
  requestId: string | null;
}

export const defineAuditEntry = (sequelize: Sequelize) =>
  sequelize.define<AuditEntryRow>(
    'AuditEntry',
    {
      id: { type: DataTypes.BIGINT, primaryKey: true, autoIncrement: true },
      at: { type: DataTypes.DATE, allowNull: false, defaultValue: literal('now()') },
      actor: { type: DataTypes.TEXT, allowNull: false },
      userId: DataTypes.TEXT,
      action: { type: DataTypes.TEXT, allowNull: false },
      subject: { type: DataTypes.TEXT, allowNull: false },
      detail: { type: DataTypes.JSONB, allowNull: false, defaultValue: {} },
      requestId: DataTypes.TEXT,
    },
    { tableName: 'audit_log', timestamps: false },
  );
