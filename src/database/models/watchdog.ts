import {
  DataTypes,
  type InferAttributes,
  type InferCreationAttributes,
  type Model,
  type Sequelize,
} from 'sequelize';
import type { WatchdogCause, WatchdogState } from '../../agents/watchdog.js';

/** What is kept of a crash. */
export interface CrashRecord {
  /** Null when the container is gone. */
  readonly exitCode: number | null;
  readonly oomKilled: boolean;
  /** The last lines of its log, without the agent's tokens. */
  readonly lastLines: readonly string[];
}

/** One change of an agent's watchdog state. */
export interface WatchdogTransitionRow extends Model<
  InferAttributes<WatchdogTransitionRow>,
  InferCreationAttributes<WatchdogTransitionRow>
> {
  /** Made by the workflow, so that writing it twice writes it once. */
  id: string;
  agentId: string;
  userId: string;
  fromState: WatchdogState;
  toState: WatchdogState;
  cause: WatchdogCause;
  /** In words for people. */
  reason: string | null;
  crash: CrashRecord | null;
  at: Date;
}

export const defineWatchdogTransition = (sequelize: Sequelize) =>
  sequelize.define<WatchdogTransitionRow>(
    'WatchdogTransition',
    {
      id: { type: DataTypes.TEXT, primaryKey: true },
      agentId: { type: DataTypes.TEXT, allowNull: false },
      userId: { type: DataTypes.TEXT, allowNull: false },
      fromState: { type: DataTypes.TEXT, allowNull: false },
      toState: { type: DataTypes.TEXT, allowNull: false },
      cause: { type: DataTypes.TEXT, allowNull: false },
      reason: DataTypes.TEXT,
      crash: DataTypes.JSONB,
      at: { type: DataTypes.DATE, allowNull: false },
    },
    {
      tableName: 'watchdog_transitions',
      timestamps: false,
      indexes: [
        {
          name: 'watchdog_transitions_agent_at',
          fields: ['agent_id', { name: 'at', order: 'DESC' }],
        },
      ],
    },
  );
