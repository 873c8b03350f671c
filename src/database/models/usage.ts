import {
  DataTypes,
  type CreationOptional,
  type InferAttributes,
  type InferCreationAttributes,
  type Model,
  type Sequelize,
} from 'sequelize';

/** What one answered AI call used. */
export interface UsageLogRow extends Model<
  InferAttributes<UsageLogRow>,
  InferCreationAttributes<UsageLogRow>
> {
  /** As the driver gives a bigint. */
  id: CreationOptional<string>;
  callId: string;
  userId: string;
  agentId: string | null;
  provider: string;
  model: string;
  inputTokens: number;
  outputTokens: number;
  /** US dollars with six decimals, as the driver gives a decimal. */
  costUsd: string;
  endpoint: string;
  createdAt: Date;
}

/** A user's tokens of one calendar month (UTC): used, and held for calls under way. */
export interface TokenQuotaRow extends Model<
  InferAttributes<TokenQuotaRow>,
  InferCreationAttributes<TokenQuotaRow>
> {
  userId: string;
  /** Its first day. */
  month: string;
  used: string;
  held: string;
}

/** Tokens held for one call until it is settled, or until its process has not been heard of. */
export interface QuotaReservationRow extends Model<
  InferAttributes<QuotaReservationRow>,
  InferCreationAttributes<QuotaReservationRow>
> {
  callId: string;
  userId: string;
  month: string;
  tokens: string;
  expiresAt: Date;
}

export const defineUsageLog = (sequelize: Sequelize) =>
  sequelize.define<UsageLogRow>(
    'UsageLog',
    {
      id: { type: DataTypes.BIGINT, primaryKey: true, autoIncrement: true },
      callId: { type: DataTypes.UUID, allowNull: false },
      userId: { type: DataTypes.STRING(255), allowNull: false },
      agentId: DataTypes.STRING(255),
      provider: { type: DataTypes.STRING(50), allowNull: false },
      model: { type: DataTypes.STRING(100), allowNull: false },
      inputTokens: { type: DataTypes.INTEGER, allowNull: false, defaultValue: 0 },
      outputTokens: { type: DataTypes.INTEGER, allowNull: false, defaultValue: 0 },
      costUsd: { type: DataTypes.DECIMAL(10, 6), allowNull: false, defaultValue: 0 },
      endpoint: { type: DataTypes.STRING(255), allowNull: false },
      createdAt: { type: DataTypes.DATE, allowNull: false },
    },
    {
      tableName: 'usage_logs',
      timestamps: false,
      indexes: [
        { name: 'usage_logs_call_id_key', unique: true, fields: ['call_id'] },
        { name: 'usage_logs_user_time', fields: ['user_id', 'created_at'] },
      ],
    },
  );

export const defineTokenQuota = (sequelize: Sequelize) =>
  sequelize.define<TokenQuotaRow>(
    'TokenQuota',
    {
      userId: { type: DataTypes.STRING(255), primaryKey: true },
      month: { type: DataTypes.DATEONLY, primaryKey: true },
      used: { type: DataTypes.BIGINT, allowNull: false },
      held: { type: DataTypes.BIGINT, allowNull: false },
    },
    { tableName: 'token_quotas', timestamps: false },
  );

export const defineQuotaReservation = (sequelize: Sequelize) =>
  sequelize.define<QuotaReservationRow>(
    'QuotaReservation',
    {
      callId: { type: DataTypes.UUID, primaryKey: true },
      userId: { type: DataTypes.STRING(255), allowNull: false },
      month: { type: DataTypes.DATEONLY, allowNull: false },
      tokens: { type: DataTypes.BIGINT, allowNull: false },
      expiresAt: { type: DataTypes.DATE, allowNull: false },
    },
    {
      tableName: 'quota_reservations',
      timestamps: false,
      indexes: [{ name: 'quota_reservations_expires_at', fields: ['expires_at'] }],
    },
  );
