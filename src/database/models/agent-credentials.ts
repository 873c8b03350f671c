import {
  DataTypes,
  type InferAttributes,
  type InferCreationAttributes,
  type Model,
  type Sequelize,
} from 'sequelize';

/** One version of a credential that an agent's tools are given. */
export interface AgentCredentialRow extends Model<
  InferAttributes<AgentCredentialRow>,
  InferCreationAttributes<AgentCredentialRow>
> {
  /** The operation that brings this version. */
  operationId: string;
  agentId: string;
  userId: string;
  /** The environment variable. */
  name: string;
  /** The value, sealed by `SecretBox`; null for a version that takes the credential away. */
  sealed: string | null;
  /**
   * `requested` until its operation begins, then `present`; what it replaced is `previous` until
   * that operation has ended.
   */
  state: 'requested' | 'present' | 'previous';
  updatedAt: Date;
}

export const defineAgentCredential = (sequelize: Sequelize) =>
  sequelize.define<AgentCredentialRow>(
    'AgentCredential',
    {
      operationId: { type: DataTypes.TEXT, primaryKey: true },
      agentId: { type: DataTypes.TEXT, allowNull: false },
      userId: { type: DataTypes.TEXT, allowNull: false },
      name: { type: DataTypes.TEXT, allowNull: false },
      sealed: DataTypes.TEXT,
      state: { type: DataTypes.TEXT, allowNull: false },
      updatedAt: { type: DataTypes.DATE, allowNull: false },
    },
    {
      tableName: 'agent_credentials',
      timestamps: false,
      indexes: [
        { name: 'agent_credentials_agent', fields: ['agent_id'] },
        {
          name: 'agent_credentials_present_key',
          unique: true,
          fields: ['agent_id', 'name'],
          where: { state: 'present' },
        },
      ],
    },
  );
