import {
  DataTypes,
  type InferAttributes,
  type InferCreationAttributes,
  type Model,
  type Sequelize,
} from 'sequelize';

export type NotificationChannelName = 'telegram' | 'discord';

/** `repeated`: the same was told a moment ago. `dropped`: it was not told, and will not be. */
export type NotificationStatus = 'waiting' | 'sending' | 'sent' | 'repeated' | 'dropped';

/** One notification on its way through one channel. */
export interface NotificationRow extends Model<
  InferAttributes<NotificationRow>,
  InferCreationAttributes<NotificationRow>
> {
  /** Made by the workflow. */
  id: string;
  channel: NotificationChannelName;
  agentId: string;
  /** What it tells; two with the same one say the same of the agent. */
  event: string;
  status: NotificationStatus;
  createdAt: Date;
  /** Its turn in the channel. */
  dueAt: Date;
  /** When it was last given to the service. */
  attemptedAt: Date | null;
  settledAt: Date | null;
}

export const defineNotification = (sequelize: Sequelize) =>
  sequelize.define<NotificationRow>(
    'Notification',
    {
      id: { type: DataTypes.TEXT, primaryKey: true },
      channel: { type: DataTypes.TEXT, primaryKey: true },
      agentId: { type: DataTypes.TEXT, allowNull: false },
      event: { type: DataTypes.TEXT, allowNull: false },
      status: { type: DataTypes.TEXT, allowNull: false },
      createdAt: { type: DataTypes.DATE, allowNull: false },
      dueAt: { type: DataTypes.DATE, allowNull: false },
      attemptedAt: DataTypes.DATE,
      settledAt: DataTypes.DATE,
    },
    {
      tableName: 'notifications',
      timestamps: false,
      indexes: [
        { name: 'notifications_channel_due', fields: ['channel', 'due_at'] },
        { name: 'notifications_channel_status', fields: ['channel', 'status', 'settled_at'] },
        { name: 'notifications_agent', fields: ['agent_id', 'created_at'] },
      ],
    },
  );
