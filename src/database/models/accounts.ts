import {
  DataTypes,
  type CreationOptional,
  type InferAttributes,
  type InferCreationAttributes,
  type Model,
  type Sequelize,
} from 'sequelize';
import type { Plan } from '../../accounts/plans.js';

export interface UserRow extends Model<InferAttributes<UserRow>, InferCreationAttributes<UserRow>> {
  id: string;
  /** Always lower case. */
  email: string;
  name: string;
  /** Null for who cannot sign in by password. */
  passwordHash: string | null;
  /** As stored; who `ADMIN_EMAILS` names is an admin too, see `isAdmin` in `accounts/admin.ts`. */
  isAdmin: CreationOptional<boolean>;
  /** Always upper case. */
  referralCode: string | null;
  createdAt: CreationOptional<Date>;
  updatedAt: CreationOptional<Date>;
}

export const defineUser = (sequelize: Sequelize) =>
  sequelize.define<UserRow>(
    'User',
    {
      id: { type: DataTypes.TEXT, primaryKey: true },
      email: { type: DataTypes.TEXT, allowNull: false },
      name: { type: DataTypes.TEXT, allowNull: false },
      passwordHash: DataTypes.TEXT,
      isAdmin: { type: DataTypes.BOOLEAN, allowNull: false, defaultValue: false },
      referralCode: DataTypes.TEXT,
      createdAt: { type: DataTypes.DATE, allowNull: false },
      updatedAt: { type: DataTypes.DATE, allowNull: false },
    },
    {
      tableName: 'users',
      indexes: [
        { name: 'users_email_key', unique: true, fields: ['email'] },
        { name: 'users_referral_code_key', unique: true, fields: ['referral_code'] },
      ],
    },
  );

export interface SessionRow extends Model<
  InferAttributes<SessionRow>,
  InferCreationAttributes<SessionRow>
> {
  /** SHA-256 of the cookie's token in hex: a read of this table signs nobody in. */
  tokenHash: string;
  userId: string;
  csrfToken: string;
  createdAt: CreationOptional<Date>;
  expiresAt: Date;
}

export const defineSession = (sequelize: Sequelize) =>
  sequelize.define<SessionRow>(
    'Session',
    {
      tokenHash: { type: DataTypes.TEXT, primaryKey: true },
      userId: { type: DataTypes.TEXT, allowNull: false },
      csrfToken: { type: DataTypes.TEXT, allowNull: false },
      createdAt: { type: DataTypes.DATE, allowNull: false },
      expiresAt: { type: DataTypes.DATE, allowNull: false },
    },
    {
      tableName: 'sessions',
      updatedAt: false,
      indexes: [
        { name: 'sessions_user_id', fields: ['user_id'] },
        { name: 'sessions_expires_at', fields: ['expires_at'] },
      ],
    },
  );

export interface SubscriptionRow extends Model<
  InferAttributes<SubscriptionRow>,
  InferCreationAttributes<SubscriptionRow>
> {
  userId: string;
  plan: Plan;
  status: 'active' | 'cancelled';
  /** Who or what granted the plan. */
  source: string;
  periodStart: Date;
  /** Null: until it is changed. */
  periodEnd: Date | null;
  createdAt: CreationOptional<Date>;
  updatedAt: CreationOptional<Date>;
}

export const defineSubscription = (sequelize: Sequelize) =>
  sequelize.define<SubscriptionRow>(
    'Subscription',
    {
      userId: { type: DataTypes.TEXT, primaryKey: true },
      plan: { type: DataTypes.TEXT, allowNull: false },
      status: { type: DataTypes.TEXT, allowNull: false },
      source: { type: DataTypes.TEXT, allowNull: false },
      periodStart: { type: DataTypes.DATE, allowNull: false },
      periodEnd: DataTypes.DATE,
      createdAt: { type: DataTypes.DATE, allowNull: false },
      updatedAt: { type: DataTypes.DATE, allowNull: false },
    },
    { tableName: 'subscriptions' },
  );

export interface CreditEntryRow extends Model<
  InferAttributes<CreditEntryRow>,
  InferCreationAttributes<CreditEntryRow>
> {
  /** A bigint, and so text in JavaScript. */
  id: CreationOptional<string>;
  userId: string;
  amount: number;
  reason: 'referral';
  /** What the credit is for: with user and reason it is unique, so nothing is credited twice. */
  reference: string;
  createdAt: CreationOptional<Date>;
}

export const defineCreditEntry = (sequelize: Sequelize) =>
  sequelize.define<CreditEntryRow>(
    'CreditEntry',
    {
      id: { type: DataTypes.BIGINT, primaryKey: true, autoIncrement: true },
      userId: { type: DataTypes.TEXT, allowNull: false },
      amount: { type: DataTypes.INTEGER, allowNull: false },
      reason: { type: DataTypes.TEXT, allowNull: false },
      reference: { type: DataTypes.TEXT, allowNull: false },
      createdAt: { type: DataTypes.DATE, allowNull: false },
    },
    {
      tableName: 'credit_entries',
      updatedAt: false,
      indexes: [
        {
          name: 'credit_entries_once',
          unique: true,
          fields: ['user_id', 'reason', 'reference'],
        },
      ],
    },
  );

export interface InstallationRow extends Model<
  InferAttributes<InstallationRow>,
  InferCreationAttributes<InstallationRow>
> {
  userId: string;
  mode: 'home' | 'link' | 'cloud';
  registeredAt: Date;
  lastSeen: Date;
  status: 'active' | 'inactive';
}

export const defineInstallation = (sequelize: Sequelize) =>
  sequelize.define<InstallationRow>(
    'Installation',
    {
      userId: { type: DataTypes.TEXT, primaryKey: true },
      mode: { type: DataTypes.TEXT, allowNull: false },
      registeredAt: { type: DataTypes.DATE, allowNull: false },
      lastSeen: { type: DataTypes.DATE, allowNull: false },
      status: { type: DataTypes.TEXT, allowNull: false },
    },
    { tableName: 'installations', timestamps: false },
  );
