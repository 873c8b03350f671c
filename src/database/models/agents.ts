import {
  DataTypes,
  Op,
  type CreationOptional,
  type InferAttributes,
  type InferCreationAttributes,
  type Model,
  type Sequelize,
} from 'sequelize';
import type { Plan } from '../../accounts/plans.js';
import type { SkillChange } from '../../agents/agent-skills.js';
import type { OperationKind, OperationStatus } from '../../agents/operation-rules.js';
import type { WatchdogMemory } from '../../agents/watchdog.js';
import type { PreviousRelease } from './releases.js';

/** What the owner wants of an agent. */
export type DesiredState = 'running' | 'stopped' | 'deleted';

/** What was last observed of an agent. */
export type AgentStatus = 'pending' | 'active' | 'stopped' | 'error';

export interface AgentRow extends Model<
  InferAttributes<AgentRow>,
  InferCreationAttributes<AgentRow>
> {
  id: string;
  userId: string;
  name: string;
  subdomain: string;
  plan: Plan;
  model: string;
  aiProvider: string;
  config: CreationOptional<Record<string, unknown>>;
  desired: CreationOptional<DesiredState>;
  status: CreationOptional<AgentStatus>;
  /** Why the status is `error`, in words for the owner. */
  statusReason: string | null;
  observedAt: Date | null;
  startedAt: Date | null;
  /** The Docker host that runs the agent. */
  host: CreationOptional<string>;
  /** The loopback port on that host, reserved from before the container is until after it. */
  port: number | null;
  image: string | null;
  runtimeVersion: string | null;
  containerId: string | null;
  /** The volume that holds its memory; null for one that is named like the container. */
  volume: CreationOptional<string | null>;
  /** Set while it is being replaced. */
  previousRelease: CreationOptional<PreviousRelease | null>;
  /** The image that it could not be updated to last. */
  failedImage: CreationOptional<string | null>;
  /** Null until it ran for the first time. */
  watchdog: CreationOptional<WatchdogMemory | null>;
  parentAgentId: string | null;
  generation: CreationOptional<number>;
  verified: CreationOptional<boolean>;
  verificationType: string | null;
  attestationUid: string | null;
  verifiedAt: Date | null;
  createdAt: CreationOptional<Date>;
  updatedAt: CreationOptional<Date>;
  /** Set when the removal is complete. Lists leave an agent out as soon as deletion is desired. */
  deletedAt: Date | null;
}

export const defineAgent = (sequelize: Sequelize) =>
  sequelize.define<AgentRow>(
    'Agent',
    {
      id: { type: DataTypes.TEXT, primaryKey: true },
      userId: { type: DataTypes.TEXT, allowNull: false },
      name: { type: DataTypes.TEXT, allowNull: false },
      subdomain: { type: DataTypes.TEXT, allowNull: false },
      plan: { type: DataTypes.TEXT, allowNull: false },
      model: { type: DataTypes.TEXT, allowNull: false },
      aiProvider: { type: DataTypes.TEXT, allowNull: false },
      config: { type: DataTypes.JSONB, allowNull: false, defaultValue: {} },
      desired: { type: DataTypes.TEXT, allowNull: false, defaultValue: 'running' },
      status: { type: DataTypes.TEXT, allowNull: false, defaultValue: 'pending' },
      statusReason: DataTypes.TEXT,
      observedAt: DataTypes.DATE,
      startedAt: DataTypes.DATE,
      host: { type: DataTypes.TEXT, allowNull: false, defaultValue: 'local' },
      port: DataTypes.INTEGER,
      image: DataTypes.TEXT,
      runtimeVersion: DataTypes.TEXT,
      containerId: DataTypes.TEXT,
      volume: DataTypes.TEXT,
      previousRelease: DataTypes.JSONB,
      failedImage: DataTypes.TEXT,
      watchdog: DataTypes.JSONB,
      parentAgentId: DataTypes.TEXT,
      generation: { type: DataTypes.INTEGER, allowNull: false, defaultValue: 1 },
      verified: { type: DataTypes.BOOLEAN, allowNull: false, defaultValue: false },
      verificationType: DataTypes.TEXT,
      attestationUid: DataTypes.TEXT,
      verifiedAt: DataTypes.DATE,
      createdAt: { type: DataTypes.DATE, allowNull: false },
      updatedAt: { type: DataTypes.DATE, allowNull: false },
      deletedAt: DataTypes.DATE,
    },
    {
      tableName: 'agents',
      indexes: [
        {
          name: 'agents_host_port_key',
          unique: true,
          fields: ['host', 'port'],
          where: { port: { [Op.ne]: null } },
        },
        {
          name: 'agents_user_name_key',
          unique: true,
          fields: ['user_id', 'name'],
          where: { desired: { [Op.ne]: 'deleted' } },
        },
        {
          name: 'agents_subdomain_key',
          unique: true,
          fields: ['subdomain'],
          where: { deleted_at: null },
        },
        // What belongs to an agent refers to (id, user_id), so that it cannot be another user's.
        { name: 'agents_id_user_key', unique: true, fields: ['id', 'user_id'] },
        { name: 'agents_user_created', fields: ['user_id', 'created_at', 'id'] },
        { name: 'agents_parent', fields: ['parent_agent_id'] },
        { name: 'agents_host_present', fields: ['host'], where: { deleted_at: null } },
      ],
    },
  );

export interface AgentSecretRow extends Model<
  InferAttributes<AgentSecretRow>,
  InferCreationAttributes<AgentSecretRow>
> {
  agentId: string;
  kind: 'gateway-token' | 'ai-token';
  userId: string;
  /** Sealed by `SecretBox`. */
  sealed: string;
  /** SHA-256 in hex of a secret by which callers are found; null for the others. */
  lookupHash: string | null;
}

export const defineAgentSecret = (sequelize: Sequelize) =>
  sequelize.define<AgentSecretRow>(
    'AgentSecret',
    {
      agentId: { type: DataTypes.TEXT, primaryKey: true },
      kind: { type: DataTypes.TEXT, primaryKey: true },
      userId: { type: DataTypes.TEXT, allowNull: false },
      sealed: { type: DataTypes.TEXT, allowNull: false },
      lookupHash: DataTypes.TEXT,
    },
    {
      tableName: 'agent_secrets',
      timestamps: false,
      indexes: [{ name: 'agent_secrets_lookup_key', unique: true, fields: ['lookup_hash'] }],
    },
  );

export interface OperationInput {
  readonly plan?: Plan;
  readonly aiProvider?: string;
  readonly model?: string;
  readonly config?: Record<string, unknown>;
  /** A skill that a `configure` changes in the configuration as it is then. */
  readonly skill?: SkillChange;
  /** A credential that a `configure` changes: its version is in `agent_credentials`. */
  readonly credential?: { readonly name: string; readonly version: string };
  /** The image of an `update`. */
  readonly image?: string;
  /** The archive of a `restore`. */
  readonly archiveId?: string;
}

export interface OperationRow extends Model<
  InferAttributes<OperationRow>,
  InferCreationAttributes<OperationRow>
> {
  id: string;
  agentId: string;
  userId: string;
  kind: OperationKind;
  status: CreationOptional<OperationStatus>;
  /** What it brings. A `configure` sets columns of the agent when it begins. */
  input: OperationInput | null;
  error: string | null;
  runId: string | null;
  requestedAt: Date;
  finishedAt: Date | null;
}

export const defineOperation = (sequelize: Sequelize) =>
  sequelize.define<OperationRow>(
    'Operation',
    {
      id: { type: DataTypes.TEXT, primaryKey: true },
      agentId: { type: DataTypes.TEXT, allowNull: false },
      userId: { type: DataTypes.TEXT, allowNull: false },
      kind: { type: DataTypes.TEXT, allowNull: false },
      status: { type: DataTypes.TEXT, allowNull: false, defaultValue: 'requested' },
      input: DataTypes.JSONB,
      error: DataTypes.TEXT,
      runId: DataTypes.TEXT,
      requestedAt: { type: DataTypes.DATE, allowNull: false },
      finishedAt: DataTypes.DATE,
    },
    {
      tableName: 'operations',
      timestamps: false,
      indexes: [
        {
          name: 'operations_agent_requested',
          fields: ['agent_id', { name: 'requested_at', order: 'DESC' }],
        },
      ],
    },
  );

export interface MessageRow extends Model<
  InferAttributes<MessageRow>,
  InferCreationAttributes<MessageRow>
> {
  id: string;
  agentId: string;
  userId: string;
  conversation: string;
  role: 'user' | 'assistant';
  content: string;
  status: CreationOptional<'complete' | 'failed'>;
  /** The order of messages: a bigint, and so text in JavaScript. */
  position: CreationOptional<string>;
  createdAt: CreationOptional<Date>;
}

export const defineMessage = (sequelize: Sequelize) =>
  sequelize.define<MessageRow>(
    'Message',
    {
      id: { type: DataTypes.TEXT, primaryKey: true },
      agentId: { type: DataTypes.TEXT, allowNull: false },
      userId: { type: DataTypes.TEXT, allowNull: false },
      conversation: { type: DataTypes.TEXT, allowNull: false },
      role: { type: DataTypes.TEXT, allowNull: false },
      content: { type: DataTypes.TEXT, allowNull: false },
      status: { type: DataTypes.TEXT, allowNull: false, defaultValue: 'complete' },
      position: { type: DataTypes.BIGINT, allowNull: false, autoIncrement: true },
      createdAt: { type: DataTypes.DATE, allowNull: false },
    },
    {
      tableName: 'messages',
      updatedAt: false,
      indexes: [
        {
          name: 'messages_conversation_position',
          fields: ['agent_id', 'conversation', 'position'],
        },
      ],
    },
  );
