import {
  DataTypes,
  type CreationOptional,
  type InferAttributes,
  type InferCreationAttributes,
  type Model,
  type Sequelize,
} from 'sequelize';

/** What a user's calls of one day (UTC) to one model used, and what they cost. */
interface UsageSums {
  userId: string;
  day: string;
  /** '' for calls without an agent. */
  agentId: string;
  provider: string;
  model: string;
  /** As the driver gives a bigint. */
  inputTokens: string;
  outputTokens: string;
  /** US dollars with six decimals, as the driver gives a decimal. */
  costUsd: string;
  calls: number;
}

/** A day's sums, but for what is pending. */
export interface UsageDailyRow
  extends
    Model<InferAttributes<UsageDailyRow>, InferCreationAttributes<UsageDailyRow>>,
    UsageSums {}

/** Sums of calls that were logged together, until they are added to their day's. */
export interface UsagePendingRow
  extends
    Model<InferAttributes<UsagePendingRow>, InferCreationAttributes<UsagePendingRow>>,
    UsageSums {
  /** As the driver gives a bigint. */
  id: CreationOptional<string>;
}

export const defineUsageDaily = (sequelize: Sequelize) =>
  sequelize.define<UsageDailyRow>(
    'UsageDaily',
    {
      userId: { type: DataTypes.STRING(255), primaryKey: true },
      day: { type: DataTypes.DATEONLY, primaryKey: true },
      agentId: { type: DataTypes.STRING(255), primaryKey: true },
      provider: { type: DataTypes.STRING(50), primaryKey: true },
      model: { type: DataTypes.STRING(100), primaryKey: true },
      inputTokens: { type: DataTypes.BIGINT, allowNull: false },
      outputTokens: { type: DataTypes.BIGINT, allowNull: false },
      costUsd: { type: DataTypes.DECIMAL(16, 6), allowNull: false },
      calls: { type: DataTypes.INTEGER, allowNull: false },
    },
    {
      tableName: 'usage_daily',
      timestamps: false,
      indexes: [
        { name: 'usage_daily_day', fields: ['day'] },
        { name: 'usage_daily_agent_day', fields: ['agent_id', 'day'] },
      ],
    },
  );

export const defineUsagePending = (sequelize: Sequelize) =>
  sequelize.define<UsagePendingRow>(
    'UsagePending',
    {
      id: { type: DataTypes.BIGINT, primaryKey: true, autoIncrement: true },
      userId: { type: DataTypes.STRING(255), allowNull: false },
      day: { type: DataTypes.DATEONLY, allowNull: false },
      agentId: { type: DataTypes.STRING(255), allowNull: false },
      provider: { type: DataTypes.STRING(50), allowNull: false },
      model: { type: DataTypes.STRING(100), allowNull: false },
      inputTokens: { type: DataTypes.BIGINT, allowNull: false },
      outputTokens: { type: DataTypes.BIGINT, allowNull: false },
      costUsd: { type: DataTypes.DECIMAL(16, 6), allowNull: false },
      calls: { type: DataTypes.INTEGER, allowNull: false },
    },
    {
      tableName: 'usage_pending',
      timestamps: false,
      indexes: [{ name: 'usage_pending_user_day', fields: ['user_id', 'day'] }],
    },
  );
