import {
  DataTypes,
  type InferAttributes,
  type InferCreationAttributes,
  type Model,
  type Sequelize,
} from 'sequelize';
import type { Plan } from '../../accounts/plans.js';

/** What an agent was before the replacement that is under way, and is again if that fails. */
export interface PreviousRelease {
  /** The operation that replaces it. */
  readonly operationId: string;
  readonly image: string | null;
  readonly runtimeVersion: string | null;
  readonly volume: string | null;
  readonly plan: Plan;
  readonly aiProvider: string;
  readonly model: string;
  readonly config: Record<string, unknown>;
}

/** A memory that an agent had before its memory was reset, or another one restored. */
export interface AgentArchiveRow extends Model<
  InferAttributes<AgentArchiveRow>,
  InferCreationAttributes<AgentArchiveRow>
> {
  /** That of the operation that put it away. */
  id: string;
  agentId: string;
  userId: string;
  /** The volume on the agent's host that holds it. */
  volume: string;
  reason: 'reset-memory' | 'restore';
  createdAt: Date;
}

export const defineAgentArchive = (sequelize: Sequelize) =>
  sequelize.define<AgentArchiveRow>(
    'AgentArchive',
    {
      id: { type: DataTypes.TEXT, primaryKey: true },
      agentId: { type: DataTypes.TEXT, allowNull: false },
      userId: { type: DataTypes.TEXT, allowNull: false },
      volume: { type: DataTypes.TEXT, allowNull: false },
      reason: { type: DataTypes.TEXT, allowNull: false },
      createdAt: { type: DataTypes.DATE, allowNull: false },
    },
    {
      tableName: 'agent_archives',
      timestamps: false,
      indexes: [
        {
          name: 'agent_archives_agent_created',
          fields: ['agent_id', { name: 'created_at', order: 'DESC' }],
        },
      ],
    },
  );
